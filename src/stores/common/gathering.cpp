#include "stores/common/gathering.hpp"

#include "base/real_clock.hpp"
#include "kernel/step.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// One batch is at the server while the next is being made.
constexpr std::size_t most_under_way = 2;
constexpr std::size_t most_requests = 128;
/// A second batch that is smaller than the first is not worth its round trips, because the callers of the first return
/// one by one. After this time it is sent anyway.
constexpr milliseconds patience_with_room{2};
/// A call that no batch has taken for this long is sent by itself: a connection that is stuck must not delay the
/// others.
constexpr milliseconds longest_gathering{100};
/// Also with a clock that a test moves by hand, which wakes no thread.
constexpr milliseconds longest_sleep{1000};

std::unexpected<Error> unknown() {
    return fail(Errc::outcome_unknown, "the change was sent with others, and the answer has not come in time");
}

bool found_locks_busy(const AttemptResult& result) { return !result && result.error().kind == Kind::locks_busy; }

bool asks_for(const Request& request, const std::vector<LockName>& locks) {
    const auto is_among = [&](const LockName& name) { return std::ranges::find(locks, name) != locks.end(); };
    return is_among(name_of(request)) || std::ranges::any_of(kernel::others_of(request), is_among);
}

}  // namespace

/// One call of `apply`. Its caller may be gone when the answer comes.
///
/// Each call has a condition variable of its own. If all slept on the gathering's mutex, a woken thread would have to
/// wait again until every other woken thread has released it.
class Gathering::Call {
public:
    enum class State { waiting, taken, answered, failed };

    Call(std::span<const Request> asked, Deadline until) : requests(asked.begin(), asked.end()), deadline(until) {}

    void nudge() {
        {
            const std::scoped_lock lock(mutex_);
            nudged_ = true;
        }
        nudged_now_.notify_one();
    }
    /// Until `nudge` is called, or at once if it was called since the last sleep.
    void sleep(milliseconds most) {
        std::unique_lock lock(mutex_);
        nudged_now_.wait_for(lock, most, [&] { return nudged_; });
        nudged_ = false;
    }

    std::vector<Request> requests;
    const Deadline deadline;
    /// Becomes `taken` under the gathering's mutex; the thread that took it sets `answered` or `failed`.
    std::atomic<State> state = State::waiting;
    Result<std::vector<Reply>> replies = std::vector<Reply>{};  ///< When answered.

private:
    std::mutex mutex_{};
    bool nudged_ = false;  ///< Guarded by mutex_.
    std::condition_variable nudged_now_{};
};

/// Counts a batch as under way for as long as this lives.
class Gathering::UnderWay {
public:
    UnderWay(Gathering& gathering, std::size_t calls) : gathering_(gathering), calls_(calls) {}
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() { gathering_.count_returned(calls_); }

private:
    Gathering& gathering_;
    const std::size_t calls_;
};

Gathering::Gathering(const Clock& clock, Apply apply, bool may_wait)
    : clock_(clock), apply_(std::move(apply)), may_wait_(may_wait) {}

Gathering::Gathering(const Clock& clock, const ApplyWithoutRows& apply)
    : Gathering(
          clock,
          [apply](auto requests, Deadline deadline, Busy) -> AttemptResult {
              auto replies = apply(requests, deadline);
              if (!replies) return std::unexpected(AttemptError{Kind::final, std::move(replies.error())});
              return std::move(*replies);
          },
          false) {}

Gathering::~Gathering() = default;

Result<std::vector<Reply>> Gathering::apply(std::span<const Request> requests, Deadline deadline) {
    using State = Call::State;
    std::unique_lock lock(mutex_);
    // However long this call waits, it takes no room from the next one.
    if (may_wait_ && under_way_ == 0 && waiting_.empty() && !one_is_alone_) {
        one_is_alone_ = true;
        lock.unlock();
        return call_alone(requests, deadline);
    }
    if (waiting_.empty() && should_send(1)) {
        count_sent(1);
        lock.unlock();
        AttemptResult result = [&] {
            const UnderWay until_here(*this, 1);
            return apply_(requests, deadline, Busy::report);
        }();
        if (!found_locks_busy(result)) return to_result(std::move(result));
        return to_result(apply_(requests, deadline, Busy::wait));
    }

    const auto call = std::make_shared<Call>(requests, deadline);
    waiting_.push_back(call);
    const Deadline with_room = Deadline::in(base::real_clock(), patience_with_room);
    const Deadline patience = Deadline::in(base::real_clock(), longest_gathering);
    const auto may_go = [&] {
        const bool has_room = under_way_ < most_under_way && with_room.passed(base::real_clock());
        return should_send(waiting_.size()) || has_room || patience.passed(base::real_clock());
    };
    const auto sleep = [&](milliseconds most) { call->sleep(std::min(deadline.remaining(clock_), most)); };
    while (call->state == State::waiting && !may_go()) {
        if (deadline.passed(clock_) && withdraw(call))
            return fail(Errc::store_unavailable, "the store is busy with other requests; nothing was changed");
        // Where there is room, the first call in the queue sends a batch soon, with all the others. Otherwise it is
        // nudged when there is room.
        const bool goes_soon = under_way_ < most_under_way && waiting_.front() == call;
        lock.unlock();
        sleep(goes_soon ? patience_with_room : longest_gathering);
        if (call->state != State::waiting) break;
        lock.lock();
    }
    // Only under the lock can no other thread take it.
    if (lock.owns_lock() && call->state == State::waiting) {
        Group group = take(call);
        const std::size_t calls = group.size();
        count_sent(calls);
        lock.unlock();
        const UnderWay until_here(*this, calls);
        send(std::move(group));
    }
    if (lock.owns_lock()) lock.unlock();
    while (call->state == State::taken) {
        if (deadline.passed(clock_)) return unknown();
        sleep(longest_sleep);
    }
    if (call->state == State::answered) return std::move(call->replies);
    return to_result(apply_(requests, deadline, Busy::wait));
}

Result<std::vector<Reply>> Gathering::call_alone(std::span<const Request> requests, Deadline deadline) {
    struct Until {
        Gathering& gathering;
        ~Until() {
            const std::scoped_lock lock(gathering.mutex_);
            gathering.one_is_alone_ = false;
        }
    } const until_here{*this};
    return to_result(apply_(requests, deadline, Busy::wait));
}

Gathering::Group Gathering::take(const std::shared_ptr<Call>& first) {
    Group group{first};
    std::size_t requests = first->requests.size();
    std::erase(waiting_, first);
    while (!waiting_.empty() && requests + waiting_.front()->requests.size() <= most_requests) {
        requests += waiting_.front()->requests.size();
        group.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    for (const auto& call : group) call->state = Call::State::taken;
    return group;
}

void Gathering::send(Group group) {
    try {
        AttemptResult result = call_together(group);
        // Send the rest without the calls whose locks are busy. Only once: at the next busy lock each call is sent
        // alone.
        if (found_locks_busy(result) && drop_calls_for(group, result.error().busy_locks) && !group.empty())
            result = call_together(group);
        deliver(group, std::move(result));
    } catch (...) {
        // No thread may be left waiting for ever.
        deliver(group, std::unexpected(AttemptError{Kind::final, unknown().error()}));
        throw;
    }
}

AttemptResult Gathering::call_together(const Group& group) {
    std::vector<Request> requests;
    // No request may be applied after its own deadline.
    Deadline deadline = Deadline::never();
    for (const auto& call : group) {
        requests.insert(requests.end(), call->requests.begin(), call->requests.end());
        deadline.at = std::min(deadline.at, call->deadline.at);
    }
    return apply_(requests, deadline, Busy::report);
}

bool Gathering::drop_calls_for(Group& group, const std::vector<LockName>& locks) {
    const auto away = std::ranges::stable_partition(group, [&](const auto& call) {
        return std::ranges::none_of(call->requests, [&](const Request& one) { return asks_for(one, locks); });
    });
    for (const auto& call : away) {
        call->state = Call::State::failed;
        call->nudge();
    }
    const bool any = !away.empty();
    group.erase(away.begin(), away.end());
    return any;
}

void Gathering::deliver(const Group& group, AttemptResult result) {
    const bool is_unknown = !result && result.error().error.code == Errc::outcome_unknown;
    const bool is_shared = result || is_unknown || (group.size() == 1 && !found_locks_busy(result));
    std::size_t at = 0;
    for (const auto& call : group) {
        if (is_shared && result) {
            const auto begin = std::make_move_iterator(result->begin() + static_cast<std::ptrdiff_t>(at));
            call->replies = std::vector<Reply>(begin, begin + static_cast<std::ptrdiff_t>(call->requests.size()));
        } else if (is_shared) {
            call->replies = std::unexpected(result.error().error);
        }
        at += call->requests.size();
        call->state = is_shared ? Call::State::answered : Call::State::failed;
        call->nudge();
    }
}

bool Gathering::should_send(std::size_t calls) const {
    return under_way_ == 0 || (under_way_ < most_under_way && calls >= calls_under_way_);
}

void Gathering::count_sent(std::size_t calls) {
    ++under_way_;
    calls_under_way_ += calls;
}

void Gathering::count_returned(std::size_t calls) {
    std::shared_ptr<Call> next;
    {
        const std::scoped_lock lock(mutex_);
        --under_way_;
        calls_under_way_ -= calls;
        if (!waiting_.empty()) next = waiting_.front();
    }
    if (next) next->nudge();
}

bool Gathering::withdraw(const std::shared_ptr<Call>& call) { return std::erase(waiting_, call) == 1; }

}  // namespace holdfast::stores
