#include "stores/sqlite/sqlite_store.hpp"

#include "base/doorbell.hpp"
#include "base/real_clock.hpp"
#include "stores/sqlite/apply.hpp"
#include "stores/sqlite/checked_store.hpp"
#include "stores/sqlite/gate.hpp"
#include "stores/sqlite/grade.hpp"
#include "stores/sqlite/read.hpp"
#include "stores/sqlite/wait.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace holdfast::stores {
namespace {

using namespace sqlite;
using std::chrono::milliseconds;

/// SQLite's own limit, SQLITE_MAX_LENGTH, unless it was built with another.
constexpr std::size_t largest_value = 1'000'000'000;

class SqliteStore final : public Store {
public:
    SqliteStore(std::string url, Place place, Sync sync, base::Promise promise, base::Presences presences,
                Bonds::Sessions sessions, const Clock& clock)
        : Store(clock),
          url_(std::move(url)),
          place_(std::move(place)),
          sync_(sync),
          clock_(clock),
          promise_(std::move(promise)),
          bells_(place_.bells()),
          bonds_(std::move(presences), sessions),
          gate_(place_.gate()) {}

    ~SqliteStore() override {
        // Its thread may be using the store.
        hub_.reset();
        close();
    }

    /// Checks a store that is there.
    Result<void> check() {
        const std::scoped_lock lock(mutex_);
        if (auto store = reader(); !store) return std::unexpected(store.error());
        return {};
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        Effects effects;
        auto replies = apply_inside_gate(requests, deadline, effects);
        // The rollback failed: a new connection starts clean.
        if (store_ && store_->database().in_transaction()) drop();
        if (!replies || !effects.changed) return replies;
        for (const LockId& called : effects.next) bells_.ring(called);
        for (const LockId& gone : effects.gone) {
            bells_.take_down(gone);
            bonds_.forget_ticket(gone);
        }
        for (const LockId& lease : effects.ended) bonds_.forget_lease(lease);
        gate_.touch();
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        if (!store) return std::unexpected(store.error());
        const Moment moment = Moment::of(clock_);
        if (*store == nullptr) return kernel::status_of(kernel::blank(name), 0, moment.now);

        const auto snapshot = Transaction::snapshot((*store)->database());
        if (!snapshot) return std::unexpected(snapshot.error());
        const auto found = (*store)->tables().record(name, moment);
        if (!found) return std::unexpected(found.error());
        const auto view = (*store)->tables().queue(name, std::nullopt, moment);
        if (!view) return std::unexpected(view.error());
        return kernel::status_of(found->record, view->queue.waiters, moment.now);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        if (!store) return std::unexpected(store.error());
        if (*store == nullptr) return {};
        const auto snapshot = Transaction::snapshot((*store)->database());
        if (!snapshot) return std::unexpected(snapshot.error());
        return read_list((*store)->database(), bonds_, query, Moment::of(clock_));
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        if (!store) return std::unexpected(store.error());
        if (*store == nullptr) return {};
        return read_history((*store)->database(), query);
    }

    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        if (!store) return std::unexpected(store.error());
        if (*store == nullptr) return page_without_store(after, event_cursor_form);
        const auto snapshot = Transaction::snapshot((*store)->database());
        if (!snapshot) return std::unexpected(snapshot.error());
        return read_events((*store)->database(), after, limit, (*store)->store_id());
    }

    Result<EventCursor> end_of_events(Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        if (!store) return std::unexpected(store.error());
        if (*store == nullptr) return EventCursor{};
        return read_end_of_events((*store)->database(), (*store)->store_id());
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_->subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .has_sessions = true,
                .pushes = true,
                .commits_batches_as_one = true,
                .shows_only_durable = true,
                .largest_value = largest_value};
    }

    std::optional<int> duplicate_session() const override { return bonds_.duplicate(); }

    void serve_others() override { bonds_.serve_others(); }

    std::optional<StoreId> store_id() const override {
        const std::scoped_lock lock(mutex_);
        return store_id_;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {url_,
                store_id_,
                promise_.grade,
                promise_.reasons,
                store_ && store_->was_used(),
                store_ && !can_write(place_)};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        const auto store = reader();
        const std::string state = !store              ? store.error().message
                                  : *store == nullptr ? "not created yet; the first use will"
                                                      : place_.database;
        std::vector<Finding> findings{{"reachable", store.has_value(), state}};
        std::ranges::move(examine_place(place_, promise_), std::back_inserter(findings));
        if (store && *store != nullptr)
            std::ranges::move(examine_session(**store, clock_, deadline), std::back_inserter(findings));
        return findings;
    }

private:
    Result<std::vector<Reply>> apply_inside_gate(std::span<const Request> requests, Deadline deadline,
                                                 Effects& effects) {
        if (!store_) {
            if (auto made = make_folder(place_); !made) return std::unexpected(made.error());
        }
        const auto inside = gate_.enter(Gate::IfMissing::create, clock_, deadline);
        if (!inside) return std::unexpected(inside.error());
        const auto store = writer();
        if (!store) return std::unexpected(store.error());
        auto replies = run_steps(**store, bonds_, requests, clock_, effects);
        if (replies && effects.changed) (*store)->checkpoint_if_due();
        return replies;
    }

    /// The store, or null while nobody has created it. Under mutex_.
    Result<CheckedStore*> reader() {
        // A file that was swapped, by a restored backup for example, is another store.
        if (store_ && identity_of(place_) != store_->file()) drop();
        if (store_) return store_.get();
        auto opened = CheckedStore::open(place_, bonds_, sync_);
        if (!opened) return std::unexpected(opened.error());
        store_ = std::move(*opened);
        if (store_) store_id_ = store_->store_id();
        return store_.get();
    }

    /// The store, ready to write; creates the store if need be. Under mutex_ and inside the gate.
    Result<CheckedStore*> writer() {
        auto store = reader();
        // It was opened where nothing could be written.
        if (store && *store != nullptr && (*store)->is_read_only() && can_write(place_)) {
            drop();
            store = reader();
        }
        // One that was there and is gone is not created again: its locks may be held, and an empty store would
        // give them to somebody else.
        if (store && *store == nullptr && store_id_)
            return fail(Errc::store_unavailable, place_.database + " is gone; nothing was changed");
        if (store && *store == nullptr) {
            if (auto created = CheckedStore::create(place_, clock_); !created) return std::unexpected(created.error());
            store = reader();
        }
        if (!store) return store;
        if (*store == nullptr) return fail(Errc::store_unavailable, place_.database + " vanished while it was created");
        if (auto ready = (*store)->prepare_to_write(); !ready) return std::unexpected(ready.error());
        return store;
    }

    void look(const Source::Read& read) {
        const std::scoped_lock lock(mutex_);
        read(reader());
    }

    /// Closes the connection and touches no file: their names may belong to another database by now.
    void drop() {
        store_->leave_log();
        store_.reset();
    }

    /// The last connection that is closed moves the log into the database, so that one clean file is left. That is a
    /// checkpoint, so it needs the gate; and a connection that only read must not change a byte. Under mutex_.
    void close() {
        if (!store_) return;
        // Counted in real time: a clock that stands still must not keep a store from closing.
        const auto inside =
            gate_.enter(Gate::IfMissing::fail, base::real_clock(), Deadline::in(base::real_clock(), milliseconds{200}));
        if (!inside || (!store_->can_write() && has_log(place_))) store_->leave_log();
        store_.reset();
    }

    const std::string url_;
    const Place place_;
    const Sync sync_;
    const Clock& clock_;
    const base::Promise promise_;
    const base::Doorbells bells_;
    Bonds bonds_;

    mutable std::mutex mutex_;
    Gate gate_;                              ///< Guarded by mutex_.
    std::unique_ptr<CheckedStore> store_{};  ///< Guarded by mutex_.
    std::optional<StoreId> store_id_{};      ///< Guarded by mutex_. Of `store_`, or of the one before it.

    std::optional<WakeHub> hub_{
        std::in_place, clock_,
        std::make_unique<Source>(place_, [this](const Source::Read& read) { look(read); }, bonds_, clock_)};
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(base::Url url, const Clock& clock) {
    const auto sync = url.take_switch("sync", true);
    if (!sync) return std::unexpected(sync.error());
    const auto with_sessions = url.take_switch("session", false);
    if (!with_sessions) return std::unexpected(with_sessions.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto place = Place::of(url.place);
    if (!place) return std::unexpected(place.error());
    const Sync policy = *sync ? Sync::on : Sync::off;
    const auto sessions = *with_sessions ? Bonds::Sessions::on : Bonds::Sessions::off;
    auto promise = base::promise_of(place->folder, policy);
    auto presences = presences_in(place->presence(), promise, sessions);
    if (!presences) return std::unexpected(presences.error());
    auto store = std::make_unique<SqliteStore>(url.redacted(), std::move(*place), policy, std::move(promise),
                                               std::move(*presences), sessions, clock);
    if (auto checked = store->check(); !checked) return std::unexpected(checked.error());
    return store;
}

}  // namespace holdfast::stores
