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

namespace holdfast {

namespace client {
class JoinedLease;
}

/// What an observer hears of a hold.
enum class HoldEventKind {
    acquiring,
    blocked,
    acquired,
    renewed,
    released,
    expired,
    stolen,
    broken,
    transferred,
    lost
};
/// `lock:acquired`.
[[nodiscard]] std::string_view name_of(HoldEventKind kind);

struct HoldEvent {
    HoldEventKind kind;
    LockName name;
    std::optional<LockStatus> lock{};  ///< As the store last showed it, where it was asked.
    std::optional<Error> cause{};      ///< Who blocks, why it was lost, or what went wrong with the release.
};

enum class Growth { linear, exponential };

/// Trying again without a place in the queue, for callers that must not wait in line.
struct Retry {
    unsigned attempts = 0;  ///< After the first.
    std::chrono::milliseconds pause{500};
    Growth growth = Growth::exponential;
};

/// From when on the lease is renewed in the background.
enum class RenewFrom {
    the_grant,
    the_call,  ///< Of `start_renewing`. For who may be done long before the first renewal is due.
};

/// How to wait, hold and renew. Everything has a default.
struct HoldOptions {
    static constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

    Holder holder = Holder::this_process();
    std::string operation{};
    std::string reason{};
    Ttl ttl = *Ttl::of(std::chrono::seconds{30});
    std::optional<std::chrono::milliseconds> max_hold{};
    std::vector<LockName> unless_held{};
    std::map<std::string, std::string> meta{};

    std::chrono::milliseconds wait{0};  ///< In the fair queue. 0: refused at once.
    Retry retry{};                      ///< Only without `wait`.
    std::stop_token cancel{};           ///< Ends the wait at once; refused with the conflict that was met.

    bool renew = true;                                          ///< False: the lease ends after one ttl.
    std::optional<std::chrono::milliseconds> renew_interval{};  ///< A third of the ttl.
    RenewFrom renew_from = RenewFrom::the_grant;
    std::chrono::milliseconds time_to_stop{0};  ///< How long before the end of the lease the work must begin to end.

    /// Called from the caller's thread while it acquires and releases, and from the renewing thread in
    /// between. Must not throw, and must not call the hold's `release`.
    std::function<void(const HoldEvent&)> observer{};

    const Clock* clock = &host_clock();  ///< Must outlive the hold.
};

/// A lock that is held: renewed in the background, released at the end.
///
/// All members may be called from any thread, except that moving and destroying need the hold alone.
/// Once lost it stays lost: a new `hold` gets a new token.
class Hold {
public:
    Hold(Hold&&) noexcept;
    Hold& operator=(Hold&&) noexcept;
    /// Releases, if `release` was not called. A failure goes to the observer, or to stderr if there is none.
    ~Hold();

    [[nodiscard]] const LockName& name() const;
    [[nodiscard]] Store& store() const;
    [[nodiscard]] const std::optional<StoreId>& store_id() const;  ///< Of `store`, which has one by now.
    [[nodiscard]] FencingToken token() const;
    [[nodiscard]] const Credentials& credentials() const;
    [[nodiscard]] const std::optional<StolenFrom>& stolen_from() const;
    [[nodiscard]] Lease lease() const;  ///< As of the last answer.

    /// Until when the lease can be trusted, on this process's boot time. Moves with every renewal. Over
    /// before the store lets anybody else in.
    [[nodiscard]] Boottime deadline() const;

    /// Starts the renewing thread, if `renew_from` left that to the caller. Until then nobody renews and nobody notices
    /// a loss; the deadline counts all the same. Without effect when it runs already. Not beside `release` or
    /// `abandon`.
    Result<void> start_renewing();

    /// Asked to stop when the hold is lost: work must end now.
    [[nodiscard]] std::stop_token lost() const;
    /// Why it was lost; empty while it is held. The words may become more exact shortly after the loss, when the store
    /// has told what happened.
    [[nodiscard]] std::optional<Error> loss() const;
    /// What `loss` would say if the lease ran out now: `max_hold`, no renewal, or what the store said to the last try.
    [[nodiscard]] Error reason_of_expiry() const;

    /// A call to the store has not returned, although its time is over. Destroying the hold waits for it, because the
    /// store need not live longer than the hold.
    [[nodiscard]] bool is_stuck() const;

    /// Stops renewing and gives the lock back. `lock_expired` or `lock_not_held` if it was lost before;
    /// other errors mean that the store could not be told, and the lease runs out by itself.
    Result<void> release();

    /// Stops renewing and leaves the lease to run out.
    void abandon();

private:
    friend Result<Hold> hold(Store&, const LockName&, const HoldOptions&);
    friend class client::JoinedLease;
    class Core;
    explicit Hold(std::unique_ptr<Core> core);
    std::unique_ptr<Core> core_;
};

/// Takes `name` on `store` and keeps it. `store` must outlive the hold.
///
/// Refused with `lock_conflict` when somebody else holds it, or the wait or the tries ran out; with
/// `usage` when this thread waits for a lock that it holds itself, or for one that sorts before a lock
/// it holds already: two threads that do so can wait for each other for ever.
[[nodiscard]] Result<Hold> hold(Store& store, const LockName& name, const HoldOptions& options = {});

/// Runs `work(hold)` while holding, and releases.
///
/// The value of `work`, or why the lock was not granted. If the hold was lost while `work` ran, its value
/// is dropped and the loss returned: what it did may have met another holder. `work` can ask the hold.
template <class Work>
[[nodiscard]] auto with_lock(Store& store, const LockName& name, const HoldOptions& options, Work work)
    -> Result<std::invoke_result_t<Work, Hold&>> {
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

/// One lock of several to be held together.
struct HoldTarget {
    Store* store;
    LockName name;
    HoldOptions options{};
};

/// Several locks as one: all or none, lost when any is lost.
class HoldGroup {
public:
    /// In the order in which they were taken: by the stores' `store_id`s, then by name.
    [[nodiscard]] const std::vector<Hold>& holds() const { return holds_; }
    [[nodiscard]] const Hold* find(const LockName& name) const;
    [[nodiscard]] Boottime deadline() const;          ///< The earliest.
    [[nodiscard]] std::optional<Error> loss() const;  ///< The first that was lost.
    [[nodiscard]] Error reason_of_expiry() const;     ///< Of the one that ends first.
    [[nodiscard]] bool is_stuck() const;              ///< Any of them is.
    /// All are tried, the first error is returned.
    Result<void> start_renewing();
    /// In reverse order; all are tried, the first error is returned.
    Result<void> release();
    void abandon();

private:
    friend Result<HoldGroup> hold_all(std::vector<HoldTarget>, std::vector<Hold>);
    std::vector<Hold> holds_;
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
