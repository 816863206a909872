#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::client {
class AsyncCalls;
class JoinedLease;
}  // namespace holdfast::client

/// Holding locks: wait, hold, renew in the background, hear of a loss, let go.
///
/// Threads. All holds of this process on one `Store` object share a few threads: one decides what is due, others call
/// the store and the user's code. A call that hangs, an observer or a stop callback that blocks, delays neither the
/// renewals nor the loss of another hold. Holds on different store objects share nothing. The threads start with the
/// first hold that is renewed and end with the last one.
///
/// What is promised: as long as `Hold::lost()` is not asked to stop and `Hold::deadline()` has not passed, the store
/// lets nobody else have the lock, unless somebody takes it away: `Break`, `Answer`, `Transfer` and the take-over of a
/// stale lease end one at once.
/// After its first second a hold subscribes to that, with one thread for all holds on a store, and `lost()` is asked to
/// stop as soon as the store reports it: at once if it pushes, within a second otherwise (`StoreProperties::pushes`).
/// While the store cannot be reached it reports nothing, and the deadline counts. What is not promised: that a process
/// which is paused notices in time. Whatever must not happen after a loss needs the token at the resource, see
/// `Hold::token`.
namespace [[gnu::visibility("default")]] holdfast {

/// What an observer hears of a hold.
enum class HoldEventKind {
    acquiring,    ///< It is about to be asked for.
    blocked,      ///< It is not to be had yet: `cause` says why. Again when another lease, or another reason, is met.
    acquired,     ///< Granted.
    renewed,      ///< Each time that a renewal succeeded.
    released,     ///< Given back; or not, and `cause` says why.
    expired,      ///< Lost, because it could not be renewed in time or the store called it expired.
    stolen,       ///< Lost: it had run out, and somebody took it.
    broken,       ///< Lost: somebody took it away.
    transferred,  ///< Lost: it was handed to somebody else.
    lost,         ///< Follows each of the four above.
    /// Each time that a renewal failed: `cause` is the store's error. It is still held, and tried again while time is
    /// left.
    renew_failed,
};
/// The name in logs: `lock:acquired`.
[[nodiscard]] std::string_view name_of(HoldEventKind kind);

/// One thing that an observer hears.
struct HoldEvent {
    HoldEventKind kind;
    LockName name;
    std::optional<LockStatus> lock{};  ///< As the store last showed it, where it was asked.
    std::optional<Error> cause{};      ///< Who blocks, why it was lost, or why a renewal or the release failed.
};

enum class Growth { linear, exponential };

/// Asking again without a place in the queue, for callers that must not queue up. The pauses have jitter.
struct Retry {
    unsigned attempts = 0;                 ///< After the first.
    std::chrono::milliseconds pause{500};  ///< Before the second attempt, at most.
    Growth growth = Growth::exponential;   ///< Of the pause, from attempt to attempt.
};

/// From when on the lease is renewed in the background.
enum class RenewFrom {
    the_grant,
    /// Of `start_renewing`. No thread is started before. For callers that may be done long before the first renewal.
    the_call,
};

/// Whether a wait that can deadlock is refused, see `hold`.
enum class OrderCheck { on, off };

/// How to wait, hold and renew. Everything has a default.
struct HoldOptions {
    static constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

    Holder holder = Holder::this_process();
    std::string operation{};                              ///< What the lock is held for. Shown to others.
    std::string reason{};                                 ///< Kept in the audit log.
    Ttl ttl = *Ttl::of(std::chrono::seconds{30});         ///< Each renewal makes the lease last so long again.
    std::optional<std::chrono::milliseconds> max_hold{};  ///< No renewal goes beyond this, counted from the grant.
    std::vector<LockName> unless_held{};                  ///< Refused while one of these is held.
    std::map<std::string, std::string> meta{};            ///< Shown with the lease, not interpreted.

    std::chrono::milliseconds wait{0};        ///< In the fair queue. 0: refused at once.
    Retry retry{};                            ///< Only without `wait`.
    std::stop_token cancel{};                 ///< Ends the wait at once: `cancelled`.
    OrderCheck order_check = OrderCheck::on;  ///< Off: this lock is neither checked nor counted for others.

    bool renew = true;                                          ///< False: the lease ends after one ttl.
    std::optional<std::chrono::milliseconds> renew_interval{};  ///< A third of the ttl.
    RenewFrom renew_from = RenewFrom::the_grant;
    std::chrono::milliseconds time_to_stop{0};  ///< How long before the end of the lease the work must begin to end.

    /// Called on the caller's thread while it acquires and releases, and on a thread of the library in between. For one
    /// hold never twice at once, and in the order of the events; but at the same time as its stop callbacks, or as the
    /// observer of another hold. It may block: the hold is renewed meanwhile, and later events wait.
    ///
    /// Must not throw. Must not release, abandon or destroy its own hold, which waits for it; other holds it may.
    std::function<void(const HoldEvent&)> observer{};

    const Clock* clock = nullptr;  ///< Null: the store's, which is nearly always right. Must outlive the hold.
};

/// A lock that is held: renewed in the background, released at the end.
///
/// A renewal that fails is tried again while time is left. One whose outcome nobody knows counts as failed: it never
/// makes the hold last longer. Once lost it stays lost, even if the store comes back: a new `hold` gets a new token.
///
/// Threads: the const members may be called from any thread, at any time. `start_renewing`, `release` and `abandon` may
/// be called from any thread, but by one at a time. Moving and destroying need the hold alone.
class Hold {
public:
    Hold(Hold&&) noexcept;
    Hold& operator=(Hold&&) noexcept;
    /// Releases, unless `release` or `abandon` was called. A failure goes to the observer: without one nobody hears of
    /// it, and the lease runs out by itself. Destroying the last hold on a store waits for calls that hang, see
    /// `is_stuck`.
    ~Hold();

    [[nodiscard]] const LockName& name() const;
    [[nodiscard]] Store& store() const;
    [[nodiscard]] const std::optional<StoreId>& store_id() const;  ///< Of `store`, which has one by now.
    [[nodiscard]] FencingToken token() const;              ///< For the resource: give it along with every write.
    [[nodiscard]] const Credentials& credentials() const;  ///< Secret: they are enough to release it.
    [[nodiscard]] const std::optional<StolenFrom>& stolen_from() const;  ///< Whose lease had run out, if one had.
    [[nodiscard]] Lease lease() const;                                   ///< As of the last answer.

    /// Until when the lease can be trusted, on this process's boot time. Moves with every renewal that succeeded, and
    /// counts from before that renewal left. Over before the store lets anybody else in.
    [[nodiscard]] Boottime deadline() const;

    /// Begins to renew, if `renew_from` left that to the caller. Until then nobody renews and nobody hears of a loss;
    /// the deadline counts nevertheless. Without effect when it is renewed already. An error if the process can have no
    /// thread for it: the hold is as before, and the call can be repeated.
    Result<void> start_renewing();

    /// Asked to stop when the hold is lost, for any reason: work must end now. Its callbacks run on a thread of the
    /// library. One that blocks delays the callbacks that this hold got after it, and nothing of another hold.
    [[nodiscard]] std::stop_token lost() const;
    /// Why it was lost; empty while it is held. The words may become more exact shortly after the loss, when the store
    /// has told what happened.
    [[nodiscard]] std::optional<Error> loss() const;
    /// What `loss` would say if the lease ran out now: `max_hold`, no renewal, or what the store said to the last try.
    [[nodiscard]] Error reason_of_expiry() const;

    /// A call to the store, of this or another hold on it, has not returned, although its time is over. Destroying the
    /// last hold on the store waits for it, because the store need not live longer.
    [[nodiscard]] bool is_stuck() const;

    /// Stops renewing and gives the lock back. `lock_expired` or `lock_not_held` if it was lost before; other errors
    /// mean that the store could not be told, or nobody knows whether it was, and the lease runs out by itself.
    ///
    /// Waits for a renewal that is under way until it is answered or given up, and for an observer or stop callback of
    /// this hold that runs. After it has returned neither is called again. Not from the observer of this hold.
    Result<void> release();

    /// Stops renewing and leaves the lease to run out. Waits as `release` does, and tells the store nothing.
    void abandon();

private:
    friend Result<Hold> hold(Store&, const LockName&, const HoldOptions&);
    friend class client::JoinedLease;
    friend class client::AsyncCalls;
    class [[gnu::visibility("hidden")]] Core;
    explicit Hold(std::unique_ptr<Core> core);
    [[nodiscard]] Core& core() const;
    std::unique_ptr<Core> core_;
};

/// Takes `name` on `store` and keeps it. `store` must outlive the hold.
///
/// The grant counts from before the request left; one that arrives too late to be used is given back. Refused with
/// `lock_conflict` when somebody else holds it and nobody waits, or the tries ran out; with `timed_out` when the wait
/// ran out, and with `cancelled` when `HoldOptions::cancel` ended it: then nothing is held, and no place in the queue
/// is left. `store_unavailable` or `outcome_unknown` stay what they are when a wait ends.
///
/// Refused with `usage` when this thread waits for a lock that it holds itself, or for one that sorts before a lock it
/// holds already: two threads that do so can wait for each other for ever. A hold counts for the thread that took it,
/// as long as the `Hold` lies on that thread's stack. Moved to another place it counts for no thread, and then for the
/// first one that calls a function of it: so a thread may take locks and pass them on to others.
[[nodiscard]] Result<Hold> hold(Store& store, const LockName& name, const HoldOptions& options = {});

/// The same for a name that is not parsed yet: `hold(store, "backup/db")`. Also refused with `name_invalid`.
[[nodiscard]] Result<Hold> hold(Store& store, std::string_view name, const HoldOptions& options = {});

/// A `Result<T>` for work that returns a T or a `Result<T>`.
template <class T>
struct ResultOf {
    using type = Result<T>;
};
template <class T>
struct ResultOf<Result<T>> {
    using type = Result<T>;
};

/// Runs `work(hold)` while holding, and releases. `name` is a `LockName` or text.
///
/// The value of `work`, or why the lock was not granted. If the hold was lost while `work` ran, its value
/// is dropped and the loss returned: what it did may have met another holder. `work` can ask the hold. If it returns a
/// `Result`, that is the result here, too.
template <class Name, class Work>
[[nodiscard]] auto with_lock(Store& store, const Name& name, const HoldOptions& options, Work work) ->
    typename ResultOf<std::invoke_result_t<Work, Hold&>>::type {
    auto held = hold(store, name, options);
    if (!held) return std::unexpected(held.error());
    const auto finish = [&]() -> std::optional<Error> {
        const auto released = held->release();
        return released ? std::nullopt : held->loss();
    };
    if constexpr (std::is_void_v<std::invoke_result_t<Work, Hold&>>) {
        work(*held);
        if (auto loss = finish()) return std::unexpected(*loss);
        return {};
    } else {
        auto value = work(*held);
        if (auto loss = finish()) return std::unexpected(*loss);
        return value;
    }
}

/// One lock of several to be held together. `store` must outlive the hold.
struct HoldTarget {
    Store* store;
    LockName name;
    HoldOptions options{};
};

/// Several locks as one: all or none, lost when any is lost. Threads as for `Hold`.
class HoldGroup {
public:
    /// In the order in which they were taken: by the stores' `store_id`s, then by name.
    [[nodiscard]] const std::vector<Hold>& holds() const { return holds_; }
    [[nodiscard]] const Hold* find(const LockName& name) const;
    [[nodiscard]] Boottime deadline() const;                                  ///< The earliest.
    [[nodiscard]] std::stop_token lost() const { return lost_.get_token(); }  ///< As soon as any of them is lost.
    [[nodiscard]] std::optional<Error> loss() const;                          ///< The first that was lost.
    [[nodiscard]] Error reason_of_expiry() const;                             ///< Of the one that ends first.
    [[nodiscard]] bool is_stuck() const;                                      ///< Any of them is.
    /// All are tried, the first error is returned.
    Result<void> start_renewing();
    /// In reverse order; all are tried, the first error is returned.
    Result<void> release();
    void abandon();

private:
    friend Result<HoldGroup> hold_all(std::vector<HoldTarget>, std::vector<Hold>);
    struct PassOn {
        std::stop_source to;
        void operator()() const { to.request_stop(); }
    };

    std::vector<Hold> holds_;
    std::stop_source lost_;
    /// One for each hold. Last, so that they end first.
    std::vector<std::unique_ptr<std::stop_callback<PassOn>>> losses_;
};

/// Takes all `targets` in a fixed order: by the `store_id`s of their stores, never by how a URL is spelt, then by name.
/// With several stores, one that does not exist yet is created first, and `config` is the answer when two of them have
/// the same id. Their waits count from the start of the call, not one after the other. If one is refused, those taken
/// before it are given back in reverse, and its refusal is returned. Those taken are renewed while the next is waited
/// for, whatever `renew_from` says.
///
/// `held` are holds that the caller has already. They become the first of the group, and go when it is refused. A
/// target that sorts before one of them is tried without waiting: two callers that wait against the order can wait for
/// each other for ever.
[[nodiscard]] Result<HoldGroup> hold_all(std::vector<HoldTarget> targets, std::vector<Hold> held = {});

}  // namespace holdfast
