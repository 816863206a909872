#include "stores/sqlite/sqlite_store.hpp"

#include "base/doorbell.hpp"
#include "base/file_watch.hpp"
#include "stores/sqlite/apply.hpp"
#include "stores/sqlite/gate.hpp"
#include "stores/sqlite/grade.hpp"
#include "stores/sqlite/session.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::stores {
namespace {

using namespace sqlite;
using std::chrono::milliseconds;

/// How long to sleep where nothing can be heard.
constexpr milliseconds nap{50};

class SqliteStore final : public Store {
public:
    SqliteStore(std::string url, Place place, Sync sync, const Clock& clock)
        : url_(std::move(url)),
          place_(std::move(place)),
          sync_(sync),
          clock_(clock),
          promise_(base::promise_of(place_.folder, sync)),
          bells_(place_.bells()),
          gate_(place_.gate()) {}

    ~SqliteStore() override { close(); }

    /// Checks a store that is there.
    Result<void> check() {
        const std::scoped_lock lock(mutex_);
        if (auto session = reader(); !session) return std::unexpected(session.error());
        return {};
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        Effects effects;
        auto replies = apply_inside_gate(requests, deadline, effects);
        // The rollback failed: a new connection starts clean.
        if (session_ && session_->database().in_transaction()) drop();
        if (!replies || !effects.changed) return replies;
        for (const LockId& ticket : effects.next) bells_.ring(ticket);
        for (const LockId& ticket : effects.gone) bells_.take_down(ticket);
        gate_.touch();
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        if (!session) return std::unexpected(session.error());
        const Moment moment = Moment::of(clock_);
        if (*session == nullptr) return kernel::status_of(kernel::blank(name), 0, moment.now);

        const auto snapshot = Transaction::snapshot((*session)->database());
        if (!snapshot) return std::unexpected(snapshot.error());
        const auto found = (*session)->tables().record(name, moment);
        if (!found) return std::unexpected(found.error());
        const auto view = (*session)->tables().queue(name, std::nullopt, moment);
        if (!view) return std::unexpected(view.error());
        return kernel::status_of(found->record, view->queue.waiters, moment.now);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        if (!session) return std::unexpected(session.error());
        if (*session == nullptr) return {};
        const auto snapshot = Transaction::snapshot((*session)->database());
        if (!snapshot) return std::unexpected(snapshot.error());
        return (*session)->tables().list(query, Moment::of(clock_));
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        if (!session) return std::unexpected(session.error());
        if (*session == nullptr) return {};
        return (*session)->tables().history(query);
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        if (watch.ticket) {
            if (auto waited = wait_in_line(watch.name, *watch.ticket, deadline, watch.stop); !waited)
                return std::unexpected(waited.error());
            return look_whose_it_is(watch, clock_, deadline);
        }
        // The watch comes first, then the look: what happens in between is not missed.
        auto heard = base::FileWatch::on(place_.gate(), base::FileWatch::Hears::changes_and_reads);
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            const auto seq = current_seq(watch.name);
            if (!seq) return std::unexpected(seq.error());
            if (*seq != watch.seen_seq) return std::nullopt;
            // Without a watch (no store yet, or no more of them to be had) looking often has to do.
            if (heard)
                static_cast<void>(heard->wait(clock_, deadline, watch.stop));
            else
                std::this_thread::sleep_for(std::min(deadline.remaining(clock_), nap));
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {url_, store_id_, promise_.grade, promise_.reasons, session_ && session_->was_used()};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        const std::string state = !session              ? session.error().message
                                  : *session == nullptr ? "not created yet; the first use will"
                                                        : place_.database;
        std::vector<Finding> findings{{"reachable", session.has_value(), state}};
        std::ranges::move(examine_place(place_, promise_), std::back_inserter(findings));
        if (session && *session != nullptr)
            std::ranges::move(examine_session(**session, clock_, deadline), std::back_inserter(findings));
        return findings;
    }

private:
    Result<std::vector<Reply>> apply_inside_gate(std::span<const Request> requests, Deadline deadline,
                                                 Effects& effects) {
        if (!session_) {
            if (auto made = make_folder(place_); !made) return std::unexpected(made.error());
        }
        const auto inside = gate_.enter(Gate::IfMissing::create, clock_, deadline);
        if (!inside) return std::unexpected(inside.error());
        const auto session = writer();
        if (!session) return std::unexpected(session.error());
        auto replies = run_steps(**session, requests, clock_, effects);
        if (replies && effects.changed) (*session)->checkpoint_if_due();
        return replies;
    }

    /// The session, or null while nobody has created the store. Under mutex_.
    Result<Session*> reader() {
        // A file that was swapped, by a restored backup for example, is another store.
        if (session_ && identity_of(place_) != session_->file()) drop();
        if (session_) return session_.get();
        auto opened = Session::open(place_, sync_);
        if (!opened) return std::unexpected(opened.error());
        session_ = std::move(*opened);
        if (session_) store_id_ = session_->store_id();
        return session_.get();
    }

    /// The session, ready to write; creates the store if need be. Under mutex_ and inside the gate.
    Result<Session*> writer() {
        auto session = reader();
        // One that was there and is gone is not created again: its locks may be held, and an empty store would
        // give them to somebody else.
        if (session && *session == nullptr && store_id_)
            return fail(Errc::store_unavailable, place_.database + " is gone; nothing was changed");
        if (session && *session == nullptr) {
            if (auto created = Session::create(place_, clock_); !created) return std::unexpected(created.error());
            session = reader();
        }
        if (!session) return session;
        if (*session == nullptr)
            return fail(Errc::store_unavailable, place_.database + " vanished while it was created");
        if (auto ready = (*session)->prepare_to_write(); !ready) return std::unexpected(ready.error());
        return session;
    }

    Result<std::uint64_t> current_seq(const LockName& name) {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        if (!session) return std::unexpected(session.error());
        if (*session == nullptr) return 0;
        return (*session)->tables().seq(name);
    }

    /// Sleeps until `ticket` is rung, or is found to be first at an open lock, or is not found.
    Result<void> wait_in_line(const LockName& name, const LockId& ticket, Deadline deadline,
                              const std::stop_token& stop) {
        const auto bell = bells_.hang(ticket);
        while (!deadline.passed(clock_) && !stop.stop_requested()) {
            // Before the look: what it says is true from then on.
            const Boottime before = clock_.boottime();
            const auto sleep = sleep_of(name, ticket);
            if (!sleep) return std::unexpected(sleep.error());
            if (!*sleep) return {};
            const Deadline look{std::min(deadline.at, before + **sleep)};
            if (!bell)
                std::this_thread::sleep_for(std::min(look.remaining(clock_), nap));
            else if (bell->wait(clock_, look, stop))
                return {};
        }
        return {};
    }

    /// How long who waits with `ticket` may sleep; empty if it may not.
    Result<std::optional<milliseconds>> sleep_of(const LockName& name, const LockId& ticket) {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        if (!session) return std::unexpected(session.error());
        const Moment moment = Moment::of(clock_);
        auto standing = base::Standing::absent;
        std::optional<Lease> lease;
        if (*session != nullptr) {
            const auto snapshot = Transaction::snapshot((*session)->database());
            if (!snapshot) return std::unexpected(snapshot.error());
            const auto found = (*session)->tables().record(name, moment);
            if (!found) return std::unexpected(found.error());
            if (found->record.held) lease = found->record.held->lease;
            const auto stands = (*session)->tables().standing(name, ticket, moment);
            if (!stands) return std::unexpected(stands.error());
            standing = *stands;
        }
        // A bell that was hung too late for its ticket has nobody else to take it down.
        if (standing == base::Standing::absent) bells_.take_down(ticket);
        return base::sleep_in_line(standing, lease, moment.now);
    }

    /// Lets go of the connection and touches no file: their names may belong to another database by now.
    void drop() {
        session_->leave_log();
        session_.reset();
    }

    /// The last connection to go moves the log into the database, so that one clean file is left. That is
    /// a checkpoint, so it needs the gate; and a connection that only read must not change a byte. Under mutex_.
    void close() {
        if (!session_) return;
        // Counted in real time: a clock that stands still must not keep a store from closing.
        const auto inside =
            gate_.enter(Gate::IfMissing::fail, host_clock(), Deadline::in(host_clock(), milliseconds{200}));
        if (!inside || (!session_->can_write() && has_log(place_))) session_->leave_log();
        session_.reset();
    }

    const std::string url_;
    const Place place_;
    const Sync sync_;
    const Clock& clock_;
    const base::Promise promise_;
    const base::Doorbells bells_;

    mutable std::mutex mutex_;
    Gate gate_;                           ///< Guarded by mutex_.
    std::unique_ptr<Session> session_{};  ///< Guarded by mutex_.
    std::optional<StoreId> store_id_{};   ///< Guarded by mutex_. Of the session, or of the last one.
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(base::Url url, const Clock& clock) {
    const auto sync = url.take_switch("sync", true);
    if (!sync) return std::unexpected(sync.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto place = Place::of(url.place);
    if (!place) return std::unexpected(place.error());
    auto store = std::make_unique<SqliteStore>(url.redacted(), std::move(*place), *sync ? Sync::on : Sync::off, clock);
    if (auto checked = store->check(); !checked) return std::unexpected(checked.error());
    return store;
}

}  // namespace holdfast::stores
