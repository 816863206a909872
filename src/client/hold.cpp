#include "holdfast/hold.hpp"

#include "base/jitter.hpp"
#include "base/os_error.hpp"
#include "client/bounded_calls.hpp"
#include "client/join.hpp"
#include "client/lock_order.hpp"
#include "client/loss.hpp"
#include "client/waiter.hpp"
#include "kernel/renewal_plan.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

/// How long the store may take to tell what happened to a lease that is lost already.
constexpr milliseconds history_patience{500};

/// A release that the store does not answer is repeated this long, and the lease runs out anyway.
constexpr milliseconds release_patience{2000};

/// A lease that was handed on is short until it is renewed. Not at once: much work is done sooner.
constexpr milliseconds short_lease_renewal{100};

kernel::RenewalPlan plan_of(const LockStatus& lock, Boottime sent_at, const HoldOptions& options) {
    // What the store granted, which max_until may have cut, and not what was asked for. One that was handed on may be
    // longer than its ttl; but the first renewal makes it a ttl, and may do so without the holder hearing of it.
    const milliseconds granted = std::min(client::time_left(lock), options.ttl.time());
    const milliseconds interval = options.renew_interval.value_or(options.ttl.time() / 3);
    const bool is_short = granted < options.ttl.time() * 9 / 10 && !client::is_at_limit(*lock.lease);
    return {granted, is_short ? std::min(interval, short_lease_renewal) : interval, sent_at, options.time_to_stop};
}

/// What must be left of a lease that was handed on, so that it can be renewed before the work has to be stopped.
std::optional<milliseconds> enough_for(const HoldOptions& options) {
    if (!options.renew) return std::nullopt;
    return std::min(options.ttl.time() / 2, options.time_to_stop + milliseconds{1000});
}

}  // namespace

std::string_view name_of(HoldEventKind kind) {
    switch (kind) {
        case HoldEventKind::acquiring: return "lock:acquiring";
        case HoldEventKind::blocked: return "lock:blocked";
        case HoldEventKind::acquired: return "lock:acquired";
        case HoldEventKind::renewed: return "lock:renewed";
        case HoldEventKind::released: return "lock:released";
        case HoldEventKind::expired: return "lock:expired";
        case HoldEventKind::stolen: return "lock:stolen";
        case HoldEventKind::broken: return "lock:broken";
        case HoldEventKind::transferred: return "lock:transferred";
        case HoldEventKind::lost: return "lock:lost";
    }
    std::abort();
}

/// One lease and the thread that keeps it.
class Hold::Core {
public:
    /// What becomes of the lease at the end: a joined one is somebody else's to give back.
    enum class AtEnd { give_back, leave };

    Core(Store& store, LockName name, const HoldOptions& options, client::Granted granted,
         client::LockOrder::Place place, AtEnd at_end = AtEnd::give_back)
        : store_(store),
          store_id_(store.info().store_id),
          at_end_(at_end),
          clock_(*options.clock),
          name_(std::move(name)),
          as_(std::move(granted.as)),
          options_(options),
          stolen_from_(std::move(granted.stolen_from)),
          place_(std::move(place)),
          status_(std::move(granted.lock)),
          plan_(plan_of(status_, granted.sent_at, options)) {
        if (store_id_) place_.note(*store_id_);
    }

    ~Core() {
        if (done_) return;
        const auto released = release();
        if (released || options_.observer) return;
        fmt::print(stderr, "holdfast: {}: releasing {} failed: {}\n", row_of(released.error().code).name, name_.text(),
                   released.error().message);
    }

    Result<void> start() {
        tell({HoldEventKind::acquired, name_, status_, std::nullopt});
        return options_.renew_from == RenewFrom::the_grant ? start_renewing() : Result<void>{};
    }

    Result<void> start_renewing() {
        if (done_ || renewer_.joinable()) return {};
        try {
            renewer_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
        } catch (const std::system_error& error) {
            return std::unexpected(base::os_error(error.code().value(), "start a thread that renews"));
        }
        return {};
    }

    Result<void> release() {
        if (done_) return fail(Errc::lock_not_held, name_.text() + " was released already");
        done_ = true;
        // Who waits for the lock should not have to wait for a thread that only sleeps: it ends afterwards.
        if (!halt()) end_renewing();
        place_.leave();
        auto released = tell_store();
        end_renewing();
        return released;
    }

    void abandon() {
        done_ = true;
        end_renewing();
        place_.leave();
    }

    const LockName& name() const { return name_; }
    Store& store() const { return store_; }
    const std::optional<StoreId>& store_id() const { return store_id_; }
    const Credentials& credentials() const { return as_; }
    const std::optional<StolenFrom>& stolen_from() const { return stolen_from_; }
    std::stop_token lost() const { return lost_.get_token(); }

    Lease lease() const {
        const std::scoped_lock lock(mutex_);
        return *status_.lease;
    }
    Boottime deadline() const {
        const std::scoped_lock lock(mutex_);
        return plan_.deadline();
    }
    std::optional<Error> loss() const {
        const std::scoped_lock lock(mutex_);
        return loss_;
    }
    Error reason_of_expiry() const {
        const std::scoped_lock lock(mutex_);
        return client::reason_of_expiry({name_, *status_.lease, options_.renew, last_failure_}, clock_.wall());
    }
    bool is_stuck() const { return calls_.is_stuck(); }

private:
    Result<void> tell_store() {
        if (auto cause = loss()) return std::unexpected(*cause);
        if (at_end_ == AtEnd::leave) return {};
        Reply reply = ask_to_release();
        // Repeating a release is harmless, and the answer may be what got lost.
        if (!reply && reply.error().code == Errc::outcome_unknown) reply = ask_to_release();
        HoldEvent event{HoldEventKind::released, name_, std::nullopt, std::nullopt};
        if (reply) event.lock = reply->lock;
        if (!reply) event.cause = reply.error();
        tell(event);
        if (!reply) return std::unexpected(reply.error());
        return {};
    }

    [[nodiscard]] Reply ask_to_release() {
        const Deadline until = Deadline::in(clock_, release_patience);
        // A thread for each release would cost more than most of them. But where a call hangs the next one may, too.
        return calls_.is_stuck() ? call(Release{name_, as_}, until) : store_.apply_one(Release{name_, as_}, until);
    }

    /// Asks the store, and does not wait longer than `until` even if the call never returns.
    [[nodiscard]] Reply call(const Request& request, Deadline until) {
        const Boottime now = clock_.boottime();
        // The store has a little less time, so that its own words arrive.
        const Deadline store_until{now + (until.at - now) * 9 / 10};
        auto reply = calls_.run<Reply>(
            [&store = store_, request, store_until] { return store.apply_one(request, store_until); }, until, clock_);
        return reply ? *std::move(reply)
                     : fail(Errc::outcome_unknown, "the call to the store has not returned, although its time is over");
    }

    /// From now on the renewing thread does nothing but end. False if it is at work still.
    bool halt() {
        const std::scoped_lock lock(sleep_mutex_);
        halted_ = true;
        return !at_work_;
    }

    void end_renewing() {
        renewer_.request_stop();
        if (renewer_.joinable()) renewer_.join();
    }

    /// The renewing thread: renews on time, tries again while time is left, and says when it is over.
    void keep(const std::stop_token& stop) {
        Boottime next = plan_.next_renewal();
        while (sleep_until(std::min(next, deadline()), stop)) {
            // After any sleep the deadline comes first: the process may have been paused beyond it.
            if (clock_.boottime() >= deadline()) return lose_by_time();
            if (!may_renew()) {
                next = Boottime::max();
                continue;
            }
            const Boottime sent_at = clock_.boottime();
            const Deadline until{std::min(deadline(), sent_at + plan_.call_timeout(sent_at))};
            auto reply = call(Renew{name_, as_, options_.ttl, Revive::no}, until);
            if (!reply && is_final(reply.error().code)) return lose_to_others(reply.error());
            next = reply ? renewed(*std::move(reply), sent_at) : failed(reply.error());
        }
    }

    Boottime renewed(Outcome outcome, Boottime sent_at) {
        {
            const std::scoped_lock lock(mutex_);
            status_ = outcome.lock;
            plan_ = plan_of(status_, sent_at, options_);
            last_failure_.reset();
        }
        tell({HoldEventKind::renewed, name_, std::move(outcome.lock), std::nullopt});
        return plan_.next_renewal();
    }

    Boottime failed(const Error& error) {
        const std::scoped_lock lock(mutex_);
        last_failure_ = error;
        return plan_.next_attempt(clock_.boottime());
    }

    /// False when another renewal would bring nothing: switched off, or max_until is reached.
    bool may_renew() const { return options_.renew && !client::is_at_limit(*status_.lease); }

    static bool is_final(Errc code) { return code == Errc::lock_expired || code == Errc::lock_not_held; }

    void lose_by_time() {
        const Error cause = reason_of_expiry();
        announce(cause);
        tell_loss(HoldEventKind::expired, cause);
    }

    /// The store says that the lease is not ours any more, and its history may say why. That comes second: somebody
    /// else may be at work already.
    void lose_to_others(Error cause) {
        announce(cause);
        HoldEventKind kind = HoldEventKind::expired;
        if (cause.code == Errc::lock_not_held) {
            const std::optional<client::Explanation> explained = explain(cause);
            if (explained) {
                kind = explained->kind;
                cause.message = explained->message;
                const std::scoped_lock lock(mutex_);
                loss_ = cause;
            }
        }
        tell_loss(kind, cause);
    }

    [[nodiscard]] std::optional<client::Explanation> explain(const Error& cause) {
        if (cause.holder && cause.holder->seq < status_.seq)
            return client::Explanation{
                HoldEventKind::expired,
                fmt::format(
                    "the store knows nothing of the lease on {}: it was emptied, or restored from an older copy",
                    name_.text())};
        const Deadline until = Deadline::in(clock_, history_patience);
        const auto events = calls_.run<Result<std::vector<AuditEvent>>>(
            [&store = store_, query = HistoryQuery{name_, {}, status_.seq, {}}, until] {
                return store.history(query, until);
            },
            until, clock_);
        if (!events || !*events) return std::nullopt;
        return client::explain_loss(name_, as_.lock_id, **events, clock_.wall());
    }

    /// Work must stop now.
    void announce(const Error& cause) {
        {
            const std::scoped_lock lock(mutex_);
            loss_ = cause;
        }
        lost_.request_stop();
    }

    void tell_loss(HoldEventKind kind, const Error& cause) const {
        std::optional<LockStatus> seen;
        if (cause.holder) seen = *cause.holder;
        tell({kind, name_, seen, cause});
        tell({HoldEventKind::lost, name_, seen, cause});
    }

    /// False when told to stop. In slices, because a timer does not count suspended time.
    bool sleep_until(Boottime when, const std::stop_token& stop) {
        std::unique_lock lock(sleep_mutex_);
        at_work_ = false;
        while (!stop.stop_requested() && clock_.boottime() < when)
            sleep_.wait_for(lock, stop, std::min(when - clock_.boottime(), milliseconds{1000}), [] { return false; });
        at_work_ = !stop.stop_requested() && !halted_;
        return at_work_;
    }

    void tell(const HoldEvent& event) const {
        if (options_.observer) options_.observer(event);
    }

    Store& store_;
    const std::optional<StoreId> store_id_;
    const AtEnd at_end_;
    const Clock& clock_;
    const LockName name_;
    const Credentials as_;
    const HoldOptions options_;
    const std::optional<StolenFrom> stolen_from_;
    client::LockOrder::Place place_;
    bool done_ = false;  ///< Touched by the owner alone.

    mutable std::mutex mutex_;  ///< Guards the four below; the renewing thread alone writes them.
    LockStatus status_;
    kernel::RenewalPlan plan_;
    std::optional<Error> last_failure_;  ///< Of a renewal, since the last that succeeded.
    std::optional<Error> loss_;

    std::stop_source lost_;
    std::mutex sleep_mutex_;  ///< Guards the two below.
    bool at_work_ = false;    ///< The renewing thread is awake.
    bool halted_ = false;     ///< It may not go to work any more.
    std::condition_variable_any sleep_;
    client::BoundedCalls calls_;  ///< Of the renewing thread, and of the owner after that has ended.
    std::jthread renewer_;        ///< Last, so that it ends before what it uses.
};

Hold::Hold(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Hold::Hold(Hold&&) noexcept = default;
Hold& Hold::operator=(Hold&&) noexcept = default;
Hold::~Hold() = default;

const LockName& Hold::name() const { return core_->name(); }
Store& Hold::store() const { return core_->store(); }
const std::optional<StoreId>& Hold::store_id() const { return core_->store_id(); }
FencingToken Hold::token() const { return core_->lease().token; }
const Credentials& Hold::credentials() const { return core_->credentials(); }
const std::optional<StolenFrom>& Hold::stolen_from() const { return core_->stolen_from(); }
Lease Hold::lease() const { return core_->lease(); }
Boottime Hold::deadline() const { return core_->deadline(); }
std::stop_token Hold::lost() const { return core_->lost(); }
std::optional<Error> Hold::loss() const { return core_->loss(); }
Error Hold::reason_of_expiry() const { return core_->reason_of_expiry(); }
bool Hold::is_stuck() const { return core_->is_stuck(); }
Result<void> Hold::start_renewing() { return core_->start_renewing(); }
Result<void> Hold::release() { return core_->release(); }
void Hold::abandon() { core_->abandon(); }

namespace {

/// Fail fast, then try again as `options.retry` says, with full jitter so that callers spread out.
Result<client::Granted> acquire_with_retry(Store& store, const Acquire& request, const HoldOptions& options) {
    std::condition_variable_any sleep;
    std::mutex mutex;
    for (unsigned attempt = 0;; ++attempt) {
        auto granted =
            client::acquire_now(store, request, *options.clock, Deadline::in(*options.clock, options.ttl.time() / 3));
        const bool again = !granted && (granted.error().code == Errc::lock_conflict ||
                                        granted.error().code == Errc::store_unavailable);
        if (!again) return granted;
        if (options.observer) options.observer({HoldEventKind::blocked, request.name, std::nullopt, granted.error()});
        if (attempt == options.retry.attempts || options.cancel.stop_requested()) return granted;

        const std::int64_t factor =
            options.retry.growth == Growth::linear ? attempt + 1 : std::int64_t{1} << std::min(attempt, 10U);
        const milliseconds most = options.retry.pause * factor;
        const milliseconds pause = base::random_between(most / 2, most);
        std::unique_lock lock(mutex);
        sleep.wait_for(lock, options.cancel, pause, [] { return false; });
    }
}

}  // namespace

Result<Hold> hold(Store& store, const LockName& name, const HoldOptions& options) {
    const bool waits = options.wait > milliseconds{0};
    auto place = client::LockOrder::enter(store, name, waits, *options.clock);
    if (!place) return std::unexpected(place.error());

    const Acquire request{name,        Credentials::random(), options.holder, options.operation,   options.reason,
                          options.ttl, options.max_hold,      std::nullopt,   options.unless_held, options.meta};
    const auto tell = [&](HoldEventKind kind, std::optional<Error> cause) {
        if (options.observer) options.observer({kind, name, std::nullopt, std::move(cause)});
    };
    tell(HoldEventKind::acquiring, std::nullopt);
    const client::Patience patience{Deadline::in(*options.clock, options.wait), options.cancel,
                                    [&](const Error& conflict) { tell(HoldEventKind::blocked, conflict); },
                                    enough_for(options)};
    auto granted = waits ? client::acquire_in_turn(store, request, *options.clock, patience)
                         : acquire_with_retry(store, request, options);
    if (!granted) return std::unexpected(granted.error());

    auto core = std::make_unique<Hold::Core>(store, name, options, *std::move(granted), std::move(*place));
    if (options.clock->boottime() >= core->deadline()) {
        // The answer took longer than the lease lasts: nobody may act on it.
        auto released = core->release();
        return fail(Errc::lock_expired, fmt::format("{} was granted too late to be used", name.text()));
    }
    if (auto started = core->start(); !started) return std::unexpected(started.error());
    return Hold(std::move(core));
}

Result<Hold> client::JoinedLease::keep(HoldOptions options) && {
    const LockName name = granted_.lock.name;
    options.ttl = ttl_;
    auto place = LockOrder::enter(*store_, name, false, *options.clock);
    if (!place) return std::unexpected(place.error());
    auto core = std::make_unique<Hold::Core>(*store_, name, options, std::move(granted_), std::move(*place),
                                             Hold::Core::AtEnd::leave);
    if (options.clock->boottime() >= core->deadline()) {
        core->abandon();
        return fail(Errc::lock_expired, fmt::format("too little is left of the lease on {} to be used", name.text()));
    }
    if (options.renew_from == RenewFrom::the_grant)
        if (auto started = core->start_renewing(); !started) return std::unexpected(started.error());
    return Hold(std::move(core));
}

}  // namespace holdfast
