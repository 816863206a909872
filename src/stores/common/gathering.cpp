#include "stores/common/gathering.hpp"

#include "kernel/step.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// One is at the server while the next is made.
constexpr std::size_t most_under_way = 2;
constexpr std::size_t most_requests = 128;
/// A second batch that is smaller than the first is not worth its round trips, as those who were answered just now come
/// back one by one. After this long it goes all the same.
constexpr milliseconds patience_with_room{2};
/// Who has waited so long to be taken goes by itself: a connection that is stuck must not hold up those that are not.
constexpr milliseconds longest_gathering{100};
/// A clock that is moved by hand does not wake anybody.
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
/// Each sleeps by itself. If all slept on the gathering's mutex, who is woken would sleep once more until those who
/// were woken with it have let go of that.
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
    /// Until it is nudged, or was since it slept last.
    void sleep(milliseconds most) {
        std::unique_lock lock(mutex_);
        nudged_now_.wait_for(lock, most, [&] { return nudged_; });
        nudged_ = false;
    }

    std::vector<Request> requests;
    const Deadline deadline;
    /// Taken under the gathering's mutex; answered or failed by who took it.
    std::atomic<State> state = State::waiting;
    Result<std::vector<Reply>> replies = std::vector<Reply>{};  ///< When answered.

private:
    std::mutex mutex_{};
    bool nudged_ = false;  ///< Guarded by mutex_.
    std::condition_variable nudged_now_{};
};

/// A batch that is under way, until this goes.
class Gathering::UnderWay {
public:
    UnderWay(Gathering& gathering, std::size_t calls) : gathering_(gathering), calls_(calls) {}
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() { gathering_.leave(calls_); }

private:
    Gathering& gathering_;
    const std::size_t calls_;
};

Gathering::Gathering(const Clock& clock, Together together, Alone alone, bool may_wait)
    : clock_(clock), together_(std::move(together)), alone_(std::move(alone)), may_wait_(may_wait) {}

Gathering::Gathering(const Clock& clock, Together together, Alone alone)
    : Gathering(clock, std::move(together), std::move(alone), true) {}

Gathering::Gathering(const Clock& clock, const Alone& apply)
    : Gathering(
          clock,
          [apply](auto requests, Deadline deadline) -> AttemptResult {
              auto replies = apply(requests, deadline);
              if (!replies) return std::unexpected(AttemptError{Kind::final, std::move(replies.error())});
              return std::move(*replies);
          },
          apply, false) {}

Gathering::~Gathering() = default;

Result<std::vector<Reply>> Gathering::apply(std::span<const Request> requests, Deadline deadline) {
    using State = Call::State;
    std::unique_lock lock(mutex_);
    // However long it waits, the next one finds as much room as if it were not there.
    if (may_wait_ && under_way_ == 0 && waiting_.empty() && !one_waits_) {
        one_waits_ = true;
        lock.unlock();
        return go_alone(requests, deadline);
    }
    if (waiting_.empty() && is_worth_it(1)) {
        enter(1);
        lock.unlock();
        AttemptResult result = [&] {
            const UnderWay until_here(*this, 1);
            return together_(requests, deadline);
        }();
        if (result) return std::move(*result);
        if (found_locks_busy(result)) return alone_(requests, deadline);
        return std::unexpected(std::move(result.error().error));
    }

    const auto call = std::make_shared<Call>(requests, deadline);
    waiting_.push_back(call);
    const Deadline with_room = Deadline::in(host_clock(), patience_with_room);
    const Deadline patience = Deadline::in(host_clock(), longest_gathering);
    const auto may_go = [&] {
        const bool has_room = under_way_ < most_under_way && with_room.passed(host_clock());
        return is_worth_it(waiting_.size()) || has_room || patience.passed(host_clock());
    };
    const auto sleep = [&](milliseconds most) { call->sleep(std::min(deadline.remaining(clock_), most)); };
    while (call->state == State::waiting && !may_go()) {
        if (deadline.passed(clock_) && withdraw(call))
            return fail(Errc::store_unavailable, "the store is busy with other requests; nothing was changed");
        // Where there is room the first in line goes soon, with all the others. Otherwise it is told when there is.
        const bool goes_soon = under_way_ < most_under_way && waiting_.front() == call;
        lock.unlock();
        sleep(goes_soon ? patience_with_room : longest_gathering);
        if (call->state != State::waiting) break;
        lock.lock();
    }
    // Only under the lock it is sure that nobody takes it.
    if (lock.owns_lock() && call->state == State::waiting) {
        Group group = take(call);
        const std::size_t calls = group.size();
        enter(calls);
        lock.unlock();
        const UnderWay until_here(*this, calls);
        lead(std::move(group));
    }
    if (lock.owns_lock()) lock.unlock();
    while (call->state == State::taken) {
        if (deadline.passed(clock_)) return unknown();
        sleep(longest_sleep);
    }
    if (call->state == State::answered) return std::move(call->replies);
    return alone_(requests, deadline);
}

Result<std::vector<Reply>> Gathering::go_alone(std::span<const Request> requests, Deadline deadline) {
    struct Until {
        Gathering& gathering;
        ~Until() {
            const std::scoped_lock lock(gathering.mutex_);
            gathering.one_waits_ = false;
        }
    } const until_here{*this};
    return alone_(requests, deadline);
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

void Gathering::lead(Group group) {
    try {
        AttemptResult result = ask(group);
        // The others go on without those whose locks are busy. Once: who meets the next such lock waits by himself.
        if (found_locks_busy(result) && send_away(group, result.error().busy_locks) && !group.empty())
            result = ask(group);
        arrive(group, std::move(result));
    } catch (...) {
        // Nobody may be left waiting for ever.
        arrive(group, std::unexpected(AttemptError{Kind::final, unknown().error()}));
        throw;
    }
}

AttemptResult Gathering::ask(const Group& group) {
    std::vector<Request> requests;
    // Nothing may happen to anybody after its own deadline.
    Deadline deadline = Deadline::never();
    for (const auto& call : group) {
        requests.insert(requests.end(), call->requests.begin(), call->requests.end());
        deadline.at = std::min(deadline.at, call->deadline.at);
    }
    return together_(requests, deadline);
}

bool Gathering::send_away(Group& group, const std::vector<LockName>& locks) {
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

void Gathering::arrive(const Group& group, AttemptResult result) {
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

bool Gathering::is_worth_it(std::size_t calls) const {
    return under_way_ == 0 || (under_way_ < most_under_way && calls >= calls_under_way_);
}

void Gathering::enter(std::size_t calls) {
    ++under_way_;
    calls_under_way_ += calls;
}

void Gathering::leave(std::size_t calls) {
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
