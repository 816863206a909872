#pragma once

#include "client/alarms.hpp"
#include "client/bounded_calls.hpp"
#include "client/callbacks.hpp"
#include "client/kept_lease.hpp"
#include "client/loss_watches.hpp"
#include "client/renewal_batches.hpp"
#include "client/worker_threads.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

namespace holdfast::client {

/// Renews all holds that this process has on one store, in batches, and announces those that are lost.
///
/// Two kinds of threads share the work, so that nothing that blocks can delay anything else:
/// - the timekeeper decides what is due and what is lost. It calls neither the store nor the user's code, so it is
///   never late. It starts with the first hold;
/// - calls to the store and the user's code (observers, stop callbacks) run on `workers_`. One thread does, until
///   something blocks it: then the timekeeper starts another for what waits, and ends up with one again. A call that
///   has not returned in time counts as failed, and the next attempt is made on another thread. The first of these
///   threads starts with the timekeeper, and if the process can have no more, the timekeeper itself tells of a loss.
///
/// A loss is reported by the store: each lease that has been held for a second is subscribed to, and when its watch
/// fires the renewer sends a `Check`, which shares batches with renewals. Only the answer to a Check or to a renewal is
/// a loss. A watch or a Check that fails is not.
///
/// A batch has what is due, and what is due soon (a tenth of its interval), so that holds that were taken at different
/// times come to be renewed together. The result of a batch counts for each hold by itself: its deadline counts from
/// before the batch left; an error of the whole call is a failed attempt of each hold in it.
///
/// What the `AsyncStore`s of this store do runs on the same threads, so that a program which has both pays once: they
/// post tasks, and set alarms with the timekeeper. A task that may wait less is taken first, but none is kept from its
/// thread for longer than it may wait.
///
/// There is one for each store object and clock. Two stores share nothing.
class Renewer {
public:
    /// The one of `store` and `clock`, which is made if there is none. Both must outlive it. Shared by the holds: the
    /// last one that lets go of it ends its threads.
    [[nodiscard]] static std::shared_ptr<Renewer> of(Store& store, const Clock& clock);

    Renewer(Store& store, const Clock& clock)
        : store_(store), clock_(clock), watches_(store, [this] { look_at_once(); }) {}
    Renewer(const Renewer&) = delete;
    Renewer& operator=(const Renewer&) = delete;
    /// Waits for calls that have not returned: the store need not live longer. No lease may be left in it.
    ~Renewer() = default;

    /// Renews `lease` from now on. Refused if the process can have no thread for it.
    [[nodiscard]] Result<void> add(KeptLease& lease);

    /// Stops renewing `lease`. Waits for a renewal of it that is under way, until it is answered or given up, and for
    /// a callback of it that runs. What its observer has not heard yet is told on this thread. After that nothing here
    /// uses it. May be called from a callback of another lease.
    void remove(KeptLease& lease);

    /// The same without waiting: false while a renewal is under way. No new one begins then, so ask again soon. The
    /// callbacks of `lease` are left to `KeptLease::finish_callbacks`.
    [[nodiscard]] bool try_remove(KeptLease& lease);

    /// A call to the store has not returned, although its time is over.
    [[nodiscard]] bool is_stuck() const;

    /// Starts the threads, which otherwise come with the first lease. An error if the process can have no more.
    [[nodiscard]] Result<void> start();
    /// Has `task` run by a thread that may block. After `start`; as long as there is another reference to this.
    void post(WorkerThreads::Task task);
    /// Posts `ring` at that time.
    [[nodiscard]] Alarms::Id set_alarm(Boottime at, std::function<void()> ring);
    /// Without effect once it was posted.
    void cancel_alarm(Alarms::Id id);

    /// For calls of the holders that must not wait for ever: questions and releases.
    [[nodiscard]] BoundedCalls& other_calls() { return other_calls_; }

private:
    struct Call;

    [[nodiscard]] Result<void> start_threads();
    void look_before(Boottime time);

    // The timekeeper's.
    void keep_time(const std::stop_token& stop);
    void take_answers(Boottime now);
    void take_hints(Boottime now);
    void finish_call(Call& call, const Result<std::vector<Reply>>& answer, Boottime now);
    void take_renewal(ScheduledRenewal& renewal, const Outcome& outcome, Boottime sent_at, Boottime now);
    void take_error(ScheduledRenewal& renewal, const Request& request, const Error& error, Boottime now);
    void count_failure(ScheduledRenewal& renewal, const Error& error, Boottime now);
    void unschedule(ScheduledRenewal& renewal);
    void lose_what_is_over(Boottime now);
    [[nodiscard]] std::vector<std::shared_ptr<Call>> prepare_calls(Boottime now);
    void send(const std::shared_ptr<Call>& call);
    void sleep(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most, const std::stop_token& stop);
    void run_soon(KeptLease::CallbacksToRun callbacks);
    void look_at_once();

    Store& store_;
    const Clock& clock_;

    mutable std::mutex mutex_;  ///< Guards everything up to the threads.
    std::condition_variable_any changed_;
    std::condition_variable let_go_;  ///< Signalled when a renewal is no longer under way.
    std::unordered_map<const KeptLease*, ScheduledRenewal> renewals_;
    std::vector<std::shared_ptr<Call>> calls_;              ///< Those that have not returned.
    std::vector<KeptLease::CallbacksToRun> callbacks_due_;  ///< Handed to `workers_` outside the mutex.
    Alarms alarms_;
    Boottime wakes_at_ = Boottime::max();  ///< When the timekeeper looks next.
    bool has_news_ = false;                ///< It must look at once.

    LossWatches watches_;  ///< Has a mutex of its own, which is taken after this one.

    // Last, so that they end before what they use: first the timekeeper, which uses the others.
    BoundedCalls other_calls_{8};
    WorkerThreads workers_;
    std::jthread timekeeper_;
};

}  // namespace holdfast::client
