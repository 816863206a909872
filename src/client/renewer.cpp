#include "client/renewer.hpp"

#include "base/os_error.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// How many calls may be under way, counting those that were given up and have not returned. When so many hang, another
/// one would hang, too.
constexpr std::size_t most_calls = 16;

/// How long a callback may keep the next one waiting before another thread takes over. Small beside the margin that a
/// deadline has for the scheduler, and long enough that a crowd of quick callbacks starts no crowd of threads.
constexpr milliseconds patience_of_callbacks{5};

/// The same for an alarm.
constexpr milliseconds patience_of_alarms{20};

constexpr milliseconds longest_sleep{1000};
constexpr milliseconds look_with_manual_clock{20};

struct RenewerRegistry {
    std::mutex mutex;
    /// Only compared: a store without holds may have been destroyed. Guarded by mutex.
    std::map<std::pair<const Store*, const Clock*>, std::weak_ptr<Renewer>> renewers;
};

RenewerRegistry& renewer_registry() {
    static RenewerRegistry all;
    return all;
}

/// Enters `renewal` for `due`, or only for its deadline if another renewal would bring nothing.
void schedule(ScheduledRenewal& renewal, Boottime due, Boottime now) {
    renewal.due = renewal.lease->can_be_renewed() ? due : Boottime::max();
    renewal.early = std::max(due - now, milliseconds{0}) / 10;
    renewal.deadline = renewal.lease->plan().deadline();
}

/// It can be renewed now, if another one is.
bool is_soon_due(const ScheduledRenewal& renewal, Boottime now) {
    return renewal.due != Boottime::max() && renewal.due - renewal.early <= now;
}

}  // namespace

/// One call to the store.
struct Renewer::Call {
    // Not changed after the call has left.
    std::vector<Request> requests{};  ///< A Renew or a Check for each of `batch`, in the same order.
    Boottime sent_at{};               ///< Before it left.
    Boottime give_up_at{};

    // Guarded by the renewer's mutex_.
    RenewalBatch batch{};  ///< Empty once the call was given up.
    bool is_given_up = false;
    std::optional<Result<std::vector<Reply>>> answer{};
};

std::shared_ptr<Renewer> Renewer::of(Store& store, const Clock& clock) {
    const std::scoped_lock lock(renewer_registry().mutex);
    auto& renewers = renewer_registry().renewers;
    std::erase_if(renewers, [](const auto& entry) { return entry.second.expired(); });
    auto& entry = renewers[{&store, &clock}];
    auto renewer = entry.lock();
    if (!renewer) entry = renewer = std::make_shared<Renewer>(store, clock);
    return renewer;
}

Result<void> Renewer::add(KeptLease& lease) {
    const std::scoped_lock lock(mutex_);
    if (auto started = start_threads(); !started) return started;
    ScheduledRenewal& renewal = renewals_[&lease];
    renewal.lease = &lease;
    const Boottime now = clock_.boottime();
    schedule(renewal, lease.plan().next_renewal(), now);
    look_before(std::min({renewal.due, renewal.deadline, watches_.add(lease, now)}));
    return {};
}

Result<void> Renewer::start() {
    const std::scoped_lock lock(mutex_);
    return start_threads();
}

/// Under mutex_.
Result<void> Renewer::start_threads() {
    if (auto started = workers_.start(); !started) return started;
    if (timekeeper_.joinable()) return {};
    try {
        timekeeper_ = base::start_thread("holdfast-renew", [this](const std::stop_token& stop) { keep_time(stop); });
    } catch (const std::system_error& error) {
        return std::unexpected(base::os_error(error.code().value(), "start a thread that renews"));
    }
    return {};
}

void Renewer::post(WorkerThreads::Task task) {
    const milliseconds patience = task.patience;
    workers_.post(std::move(task));
    // The timekeeper sees to it that the task gets a thread.
    const std::scoped_lock lock(mutex_);
    look_before(clock_.boottime() + patience);
}

Alarms::Id Renewer::set_alarm(Boottime at, std::function<void()> ring) {
    const std::scoped_lock lock(mutex_);
    look_before(at);
    return alarms_.set(at, std::move(ring));
}

void Renewer::cancel_alarm(Alarms::Id id) {
    const std::scoped_lock lock(mutex_);
    alarms_.cancel(id);
}

/// Under mutex_: the timekeeper has something to do at `time`.
void Renewer::look_before(Boottime time) {
    if (time >= wakes_at_) return;
    has_news_ = true;
    changed_.notify_all();
}

void Renewer::remove(KeptLease& lease) {
    {
        std::unique_lock lock(mutex_);
        ScheduledRenewal& renewal = renewals_.at(&lease);
        renewal.is_leaving = true;
        let_go_.wait(lock, [&] { return !renewal.is_under_way; });
        renewals_.erase(&lease);
    }
    watches_.remove(lease);
    lease.finish_callbacks();
}

bool Renewer::try_remove(KeptLease& lease) {
    {
        const std::scoped_lock lock(mutex_);
        ScheduledRenewal& renewal = renewals_.at(&lease);
        renewal.is_leaving = true;
        if (renewal.is_under_way) return false;
        renewals_.erase(&lease);
    }
    watches_.remove(lease);
    return true;
}

bool Renewer::is_stuck() const {
    const std::scoped_lock lock(mutex_);
    return other_calls_.is_stuck() ||
           std::ranges::any_of(calls_, [](const auto& call) { return call->is_given_up && !call->answer; });
}

void Renewer::keep_time(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        has_news_ = false;
        const Boottime now = clock_.boottime();
        // In this order: an answer that is there counts, and after that the deadline comes before any renewal, because
        // the process may have been paused beyond it.
        take_answers(now);
        take_hints(now);
        lose_what_is_over(now);
        const auto calls = prepare_calls(now);
        const auto callbacks = std::exchange(callbacks_due_, {});
        auto alarms = alarms_.take_due(now);
        if (calls.empty() && callbacks.empty() && alarms.empty() && !watches_.has_work(now)) {
            const auto relief = workers_.relieve();
            if (!relief.to_run_here) {
                sleep(lock, relief.next, stop);
                continue;
            }
            lock.unlock();
            relief.to_run_here();
            lock.lock();
            continue;
        }
        lock.unlock();
        for (const auto& queue : callbacks)
            workers_.post({.run = [queue] { queue->run(); }, .patience = patience_of_callbacks, .is_urgent = true});
        for (auto& ring : alarms) workers_.post({.run = std::move(ring), .patience = patience_of_alarms});
        for (const auto& call : calls) send(call);
        watches_.tend(now);
        lock.lock();
    }
}

void Renewer::take_answers(Boottime now) {
    for (const auto& call : calls_) {
        if (call->answer)
            finish_call(*call, *call->answer, now);
        else if (!call->is_given_up && now >= call->give_up_at)
            finish_call(
                *call, fail(Errc::outcome_unknown, "the call to the store has not returned, although its time is over"),
                now);
    }
    std::erase_if(calls_, [](const auto& call) { return call->answer.has_value(); });
}

void Renewer::finish_call(Call& call, const Result<std::vector<Reply>>& answer, Boottime now) {
    for (std::size_t i = 0; i < call.batch.size(); ++i) {
        ScheduledRenewal& renewal = *call.batch[i];
        renewal.is_under_way = false;
        const Request& request = call.requests[i];
        if (!answer)
            take_error(renewal, request, answer.error(), now);
        else if (const Reply& reply = (*answer)[i]; !reply)
            take_error(renewal, request, reply.error(), now);
        else if (std::holds_alternative<Renew>(request))
            take_renewal(renewal, *reply, call.sent_at, now);
    }
    call.batch.clear();
    call.is_given_up = !call.answer;
    let_go_.notify_all();
}

void Renewer::take_renewal(ScheduledRenewal& renewal, const Outcome& outcome, Boottime sent_at, Boottime now) {
    run_soon(renewal.lease->on_renewed(outcome, sent_at));
    renewal.has_failed = false;
    schedule(renewal, renewal.lease->plan().next_renewal(), now);
}

/// A question that failed changes nothing: the lease's watch fires again.
void Renewer::take_error(ScheduledRenewal& renewal, const Request& request, const Error& error, Boottime now) {
    if (const auto loss = loss_told_by(renewal.lease->name(), error)) {
        run_soon(renewal.lease->on_refusal(*loss, other_calls_));
        unschedule(renewal);
    } else if (std::holds_alternative<Renew>(request)) {
        count_failure(renewal, error, now);
    }
}

void Renewer::count_failure(ScheduledRenewal& renewal, const Error& error, Boottime now) {
    run_soon(renewal.lease->on_failure(error));
    renewal.has_failed = true;
    schedule(renewal, renewal.lease->plan().next_attempt(now), now);
}

/// The lease is lost, so nothing is done for it any more.
void Renewer::unschedule(ScheduledRenewal& renewal) {
    renewal.due = renewal.deadline = Boottime::max();
    renewal.is_in_question = false;
    watches_.forget(*renewal.lease);
}

void Renewer::take_hints(Boottime now) {
    for (const KeptLease* lease : watches_.take_hints(now))
        if (const auto found = renewals_.find(lease); found != renewals_.end()) found->second.is_in_question = true;
}

void Renewer::lose_what_is_over(Boottime now) {
    for (auto& [lease, renewal] : renewals_) {
        if (now < renewal.deadline || renewal.is_under_way) continue;
        run_soon(renewal.lease->on_deadline());
        unschedule(renewal);
    }
}

std::vector<std::shared_ptr<Renewer::Call>> Renewer::prepare_calls(Boottime now) {
    RenewalBatch renewals;
    bool is_any_due = false;
    for (auto& [lease, renewal] : renewals_) {
        if (renewal.is_under_way || renewal.is_leaving) continue;
        if (!is_soon_due(renewal, now) && !renewal.is_in_question) continue;
        is_any_due = is_any_due || renewal.due <= now || renewal.is_in_question;
        renewal.give_up_at = std::min(renewal.deadline, now + renewal.lease->plan().call_timeout(now));
        renewals.push_back(&renewal);
    }
    if (!is_any_due) return {};
    const std::size_t free_calls = most_calls - std::min(most_calls, calls_.size());
    if (free_calls == 0) {
        for (ScheduledRenewal* renewal : renewals)
            if (is_soon_due(*renewal, now))
                count_failure(*renewal, {Errc::store_unavailable, "too many calls to the store have not returned"},
                              now);
        return {};
    }
    std::vector<std::shared_ptr<Call>> calls;
    for (RenewalBatch& batch : split_into_batches(std::move(renewals), now, free_calls)) {
        // Shared with the thread that makes the call, which may be given up.
        auto call = std::make_shared<Call>();
        call->sent_at = now;
        call->give_up_at = batch.front()->give_up_at;
        for (ScheduledRenewal* renewal : batch) {
            renewal->is_under_way = true;
            renewal->is_in_question = false;
            // A renewal answers the question, too.
            if (is_soon_due(*renewal, now))
                call->requests.emplace_back(renewal->lease->renewal());
            else
                call->requests.emplace_back(renewal->lease->check());
        }
        call->batch = std::move(batch);
        calls_.push_back(call);
        calls.push_back(std::move(call));
    }
    return calls;
}

void Renewer::send(const std::shared_ptr<Call>& call) {
    const auto answer = [this, call](Result<std::vector<Reply>> replies) {
        const std::scoped_lock lock(mutex_);
        call->answer = std::move(replies);
        has_news_ = true;
        changed_.notify_all();
    };
    // The store has a little less time, so that its own error arrives.
    const Deadline until{call->sent_at + (call->give_up_at - call->sent_at) * 9 / 10};
    workers_.post({.run = [this, call, until, answer] { answer(store_.apply(call->requests, until)); },
                   .patience = (call->give_up_at - call->sent_at) / 10});
}

void Renewer::sleep(std::unique_lock<std::mutex>& lock, milliseconds most, const std::stop_token& stop) {
    const Boottime now = clock_.boottime();
    wakes_at_ = std::min({watches_.next_work(), alarms_.next(), now + most});
    for (const auto& [lease, renewal] : renewals_)
        wakes_at_ =
            std::min(wakes_at_, renewal.is_under_way ? renewal.deadline : std::min(renewal.due, renewal.deadline));
    for (const auto& call : calls_)
        if (!call->is_given_up) wakes_at_ = std::min(wakes_at_, call->give_up_at);
    // In slices, because a timer does not count suspended time, and a clock that is moved by hand wakes nobody.
    const milliseconds longest = std::min(most, clock_.judges() ? look_with_manual_clock : longest_sleep);
    changed_.wait_for(lock, stop, std::clamp(wakes_at_ - now, milliseconds{0}, longest), [&] { return has_news_; });
}

/// From any thread, without its mutex.
void Renewer::look_at_once() {
    const std::scoped_lock lock(mutex_);
    has_news_ = true;
    changed_.notify_all();
}

void Renewer::run_soon(KeptLease::CallbacksToRun callbacks) {
    if (callbacks) callbacks_due_.push_back(std::move(callbacks));
}

}  // namespace holdfast::client
