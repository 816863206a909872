#include "stores/batch/gathering.hpp"

#include <algorithm>
#include <condition_variable>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;

/// One is at the server while the next is made.
constexpr std::size_t most_under_way = 2;
constexpr std::size_t most_requests = 128;
/// Who has waited so long to be taken goes by itself: a connection that is stuck must not hold up those that are not.
constexpr milliseconds longest_gathering{100};
/// A clock that is moved by hand does not wake anybody.
constexpr milliseconds longest_sleep{1000};

std::unexpected<Error> unknown() {
    return fail(Errc::outcome_unknown, "the change was sent with others, and the answer has not come in time");
}

}  // namespace

/// One call of `apply`. Its caller may be gone when the answer comes.
struct Gathering::Call {
    enum class State { waiting, taken, answered, failed };

    std::vector<Request> requests;
    Deadline deadline;
    State state = State::waiting;                               ///< Guarded by mutex_, as all of it.
    Result<std::vector<Reply>> replies = std::vector<Reply>{};  ///< When answered.
    std::condition_variable changed{};
};

/// A batch that is under way, until this goes.
class Gathering::UnderWay {
public:
    explicit UnderWay(Gathering& gathering) : gathering_(gathering) {}
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() { gathering_.leave(); }

private:
    Gathering& gathering_;
};

Gathering::Gathering(const Clock& clock, Apply apply) : clock_(clock), apply_(std::move(apply)) {}

Gathering::~Gathering() = default;

Result<std::vector<Reply>> Gathering::apply(std::span<const Request> requests, Deadline deadline) {
    using State = Call::State;
    std::unique_lock lock(mutex_);
    if (under_way_ < most_under_way && waiting_.empty()) {
        ++under_way_;
        lock.unlock();
        const UnderWay until_here(*this);
        return apply_(requests, deadline);
    }

    const auto call = std::make_shared<Call>(std::vector<Request>(requests.begin(), requests.end()), deadline);
    waiting_.push_back(call);
    const Deadline patience = Deadline::in(host_clock(), longest_gathering);
    const auto sleep = [&](milliseconds most) {
        call->changed.wait_for(lock, std::min(deadline.remaining(clock_), most));
    };
    while (call->state == State::waiting && under_way_ >= most_under_way && !patience.passed(host_clock())) {
        if (deadline.passed(clock_) && withdraw(call))
            return fail(Errc::store_unavailable, "the store is busy with other requests; nothing was changed");
        sleep(longest_gathering);
    }
    if (call->state == State::waiting) {
        const Group group = take(call);
        ++under_way_;
        lock.unlock();
        {
            const UnderWay until_here(*this);
            lead(group);
        }
        lock.lock();
    }
    while (call->state == State::taken) {
        if (deadline.passed(clock_)) return unknown();
        sleep(longest_sleep);
    }
    if (call->state == State::answered) return std::move(call->replies);
    lock.unlock();
    return apply_(requests, deadline);
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

void Gathering::lead(const Group& group) {
    std::vector<Request> requests;
    // Nothing may happen to anybody after its own deadline.
    Deadline deadline = Deadline::never();
    for (const auto& call : group) {
        requests.insert(requests.end(), call->requests.begin(), call->requests.end());
        deadline.at = std::min(deadline.at, call->deadline.at);
    }
    try {
        arrive(group, apply_(requests, deadline));
    } catch (...) {
        // Nobody may be left waiting for ever.
        arrive(group, unknown());
        throw;
    }
}

void Gathering::arrive(const Group& group, const Result<std::vector<Reply>>& replies) {
    const std::scoped_lock lock(mutex_);
    const bool is_shared = replies || replies.error().code == Errc::outcome_unknown || group.size() == 1;
    std::size_t at = 0;
    for (const auto& call : group) {
        if (is_shared && replies) {
            const auto begin = replies->begin() + static_cast<std::ptrdiff_t>(at);
            call->replies = std::vector<Reply>(begin, begin + static_cast<std::ptrdiff_t>(call->requests.size()));
        } else if (is_shared) {
            call->replies = std::unexpected(replies.error());
        }
        at += call->requests.size();
        call->state = is_shared ? Call::State::answered : Call::State::failed;
        call->changed.notify_one();
    }
}

void Gathering::leave() {
    const std::scoped_lock lock(mutex_);
    --under_way_;
    if (!waiting_.empty()) waiting_.front()->changed.notify_one();
}

bool Gathering::withdraw(const std::shared_ptr<Call>& call) { return std::erase(waiting_, call) == 1; }

}  // namespace holdfast::stores
