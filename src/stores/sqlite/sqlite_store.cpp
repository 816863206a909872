#include "stores/sqlite/sqlite_store.hpp"

#include "kernel/step.hpp"
#include "stores/sqlite/examine.hpp"
#include "stores/sqlite/gate.hpp"
#include "stores/sqlite/hints.hpp"
#include "stores/sqlite/session.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::stores {
namespace {

using namespace sqlite;
using kernel::Decision;
using std::chrono::milliseconds;

/// What a batch did, beside its replies.
struct Effects {
    bool changed = false;
    std::vector<LockId> gone;      ///< Tickets that were removed.
    std::vector<LockName> opened;  ///< Locks that somebody in their queue may now take.
    std::vector<LockId> next;      ///< The first in those queues.
};

/// What a step reads.
struct Loaded {
    kernel::State state;
    std::vector<LockId> dead;  ///< Tickets that have run out.
    bool of_earlier_boot = false;
};

class SqliteStore final : public Store {
public:
    SqliteStore(std::string url, Place place, Sync sync, const Clock& clock)
        : url_(std::move(url)),
          place_(std::move(place)),
          sync_(sync),
          clock_(clock),
          standing_(standing_of(place_, sync)),
          hints_(place_.hints()),
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
        for (const LockId& ticket : effects.gone) hints_.forget(ticket);
        for (const LockId& ticket : effects.next) hints_.wake(ticket);
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

    Result<void> wait_for_change(const Watch& watch, Deadline deadline) override {
        // The watch comes first, then the look: what happens in between is not missed.
        auto heard = watch.ticket ? hints_.watch(*watch.ticket) : base::FileWatch::on(place_.gate());
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            const auto seq = current_seq(watch.name);
            if (!seq) return std::unexpected(seq.error());
            if (*seq != watch.seen_seq) return {};
            if (!heard) {
                // Without a watch (no store yet, or no more of them to be had) looking often has to do.
                std::this_thread::sleep_for(std::min(deadline.remaining(clock_), milliseconds{50}));
            } else if (heard->wait(clock_, deadline, watch.stop) && watch.ticket) {
                return {};
            }
        }
        return {};
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {url_, store_id_, standing_.grade, standing_.reasons};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        const auto session = reader();
        const std::string state = !session              ? session.error().message
                                  : *session == nullptr ? "not created yet; the first use will"
                                                        : place_.database;
        std::vector<Finding> findings{{"reachable", session.has_value(), state}};
        std::ranges::move(examine_place(place_, standing_), std::back_inserter(findings));
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
        auto replies = run(**session, requests, effects);
        if (replies && effects.changed) (*session)->checkpoint_if_due();
        return replies;
    }

    /// The batch in one transaction, which is given up if it changes nothing.
    Result<std::vector<Reply>> run(Session& session, std::span<const Request> requests, Effects& effects) {
        auto transaction = Transaction::immediate(session.database());
        if (!transaction) return std::unexpected(transaction.error());
        // Read after the lock was taken: time that passed while waiting for it counts.
        const Moment moment = Moment::of(clock_);
        std::vector<Reply> replies;
        replies.reserve(requests.size());
        for (const Request& request : requests) {
            const auto loaded = load(session.tables(), request, moment);
            // A row that cannot be read blocks its own lock. Damage that SQLite itself finds blocks them all.
            if (!loaded && loaded.error().code == Errc::record_corrupt && !session.database().damaged()) {
                replies.emplace_back(std::unexpected(loaded.error()));
                continue;
            }
            if (!loaded) return std::unexpected(loaded.error());
            Decision decision = kernel::step(loaded->state, request, moment.now);
            if (auto saved = save(session.tables(), *loaded, decision, moment, effects); !saved)
                return std::unexpected(saved.error());
            replies.push_back(std::move(decision.reply));
        }
        if (!effects.changed) return replies;
        if (auto found = find_next(session.tables(), moment, effects); !found) return std::unexpected(found.error());
        if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
        return replies;
    }

    static Result<Loaded> load(Tables& tables, const Request& request, const Moment& moment) {
        auto found = tables.record(name_of(request), moment);
        if (!found) return std::unexpected(found.error());
        auto view = tables.queue(name_of(request), kernel::ticket_of(request), moment);
        if (!view) return std::unexpected(view.error());
        Loaded loaded{
            {std::move(found->record), std::move(view->queue), {}}, std::move(view->dead), found->of_earlier_boot};
        for (const LockName& name : kernel::others_of(request)) {
            auto other = tables.record(name, moment);
            if (!other) return std::unexpected(other.error());
            loaded.state.others.push_back(std::move(other->record));
        }
        return loaded;
    }

    /// After an error the transaction holds half a step, and must not be committed.
    static Result<void> save(Tables& tables, const Loaded& loaded, const Decision& decision, const Moment& moment,
                             Effects& effects) {
        const kernel::Record& before = loaded.state.record;
        // The first to come after a reboot pins down what is left of the lease. Otherwise a wall clock that
        // lost the date would grant it one more ttl at every look.
        const bool pins = loaded.of_earlier_boot && before.held && !decision.record;
        if (decision.record || pins) {
            effects.changed = true;
            const auto put = tables.put_record(decision.record ? *decision.record : before, before.seq == 0, moment);
            if (!put) return put;
        }
        for (const AuditEvent& event : decision.events)
            if (auto added = tables.add_event(event); !added) return added;
        if (!decision.record && !decision.put_ticket && !decision.drop_ticket) return {};
        return save_queue(tables, loaded, decision, moment, effects);
    }

    static Result<void> save_queue(Tables& tables, const Loaded& loaded, const Decision& decision, const Moment& moment,
                                   Effects& effects) {
        const kernel::Record& before = loaded.state.record;
        effects.changed = true;
        std::vector<LockId> dropped = loaded.dead;
        if (decision.drop_ticket) dropped.push_back(*decision.drop_ticket);
        for (const LockId& ticket : dropped)
            if (auto gone = tables.drop_ticket(before.name, ticket); !gone) return gone;
        if (decision.put_ticket) {
            if (auto put = tables.put_ticket(before.name, *decision.put_ticket, moment); !put) return put;
        }
        effects.gone.insert(effects.gone.end(), dropped.begin(), dropped.end());
        const auto& held = decision.record ? decision.record->held : before.held;
        const bool is_open = !held || held->lease.expires_at <= moment.now;
        const bool is_news = decision.record || !dropped.empty();
        if (is_news && is_open && loaded.state.queue.waiters > 0) effects.opened.push_back(before.name);
        return {};
    }

    /// Who is to be woken. Only the first in line could do anything with the news.
    static Result<void> find_next(Tables& tables, const Moment& moment, Effects& effects) {
        for (const LockName& name : effects.opened) {
            const auto view = tables.queue(name, std::nullopt, moment);
            if (!view) return std::unexpected(view.error());
            if (view->queue.head) effects.next.push_back(view->queue.head->lock_id);
        }
        return {};
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
    const Standing standing_;
    const Hints hints_;

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
    auto store =
        std::make_unique<SqliteStore>(url.redacted(), std::move(*place), *sync ? Sync::full : Sync::off, clock);
    if (auto checked = store->check(); !checked) return std::unexpected(checked.error());
    return store;
}

}  // namespace holdfast::stores
