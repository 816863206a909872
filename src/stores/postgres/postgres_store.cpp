#include "stores/postgres/postgres_store.hpp"

#include "kernel/step.hpp"
#include "stores/batch/gathering.hpp"
#include "stores/postgres/examine.hpp"
#include "stores/postgres/guess.hpp"
#include "stores/postgres/keeper.hpp"
#include "stores/postgres/listener.hpp"
#include "stores/postgres/pool.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/transaction.hpp"
#include "stores/postgres/writing.hpp"

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>

namespace holdfast::stores {
namespace {

using namespace postgres;
using std::chrono::milliseconds;

constexpr int most_conflicts = 5;
constexpr milliseconds longest_sleep{1000};

milliseconds between(milliseconds least, milliseconds most) {
    static thread_local std::minstd_rand random(std::random_device{}());
    return milliseconds{std::uniform_int_distribution<milliseconds::rep>(least.count(), most.count())(random)};
}

class PostgresStore final : public Store {
public:
    PostgresStore(Settings settings, const Clock& clock)
        : settings_(std::move(settings)),
          clock_(clock),
          statements_(settings_),
          pool_(settings_),
          listener_(settings_),
          keeper_(settings_),
          gathering_(
              clock,
              [this](auto requests, Deadline deadline) {
                  return apply_all(requests, Budget::of(clock_, deadline), Busy::report);
              },
              [this](auto requests, Deadline deadline) {
                  return apply_alone(requests, Budget::of(clock_, deadline));
              }) {}

    /// Asks the server what it promises, and looks at a store that is there.
    Result<void> check() {
        const Budget budget = Budget::of(milliseconds{10'000});
        auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        const auto facts = facts_of(**connection, clock_, budget);
        pool_.give(std::move(*connection));
        if (!facts) return std::unexpected(facts.error());
        standing_ = standing_of(*facts);
        const auto seen = look({}, budget);
        if (!seen) return std::unexpected(seen.error());
        if (settings_.session) return keeper_.connect(budget);
        return {};
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        if (!settings_.session) return gathering_.apply(requests, deadline);
        const Budget budget = Budget::of(clock_, deadline);
        // The advisory lock comes first: a row that names one which nobody holds may be taken by anybody.
        keeper_.repair(budget);
        std::vector<std::pair<LockName, LockId>> fresh;
        const auto hold = [&](const LockName& name, const LockId& lock_id) {
            if (keeper_.hold(name, lock_id, budget)) fresh.emplace_back(name, lock_id);
        };
        for (const Request& request : requests) {
            if (const auto* acquire = std::get_if<Acquire>(&request)) hold(acquire->name, acquire->as.lock_id);
            // A lease may have come before the server noticed that the session of the one before it was gone.
            if (const auto* renew = std::get_if<Renew>(&request)) hold(renew->name, renew->as.lock_id);
        }
        auto replies = apply_alone(requests, budget);
        for (std::size_t i = 0; replies && i < requests.size(); ++i) release_session(requests[i], (*replies)[i]);
        // Where the outcome is unknown there may be a lease that needs it.
        if (!replies && replies.error().code != Errc::outcome_unknown)
            for (const auto& [name, lock_id] : fresh) keeper_.let_go(name, lock_id);
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        const Wanted wanted{.name = name};
        const auto view = view_of(wanted, deadline);
        if (!view) return std::unexpected(view.error());
        if (!*view) return kernel::status_of(kernel::blank(name), 0, clock_.judges().value_or(clock_.wall()));
        const Result<LockView>& lock = (*view)->locks.at(name);
        if (!lock) return std::unexpected(lock.error());
        return kernel::status_of(lock->record, lock->waiters, (*view)->now);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        const auto seen = look({ask_list(statements_, clock_, query)}, Budget::of(clock_, deadline));
        if (!seen) return std::unexpected(seen.error());
        if (!*seen) return {};
        return read_list((*seen)->front());
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        const auto seen = look({ask_history(statements_, query)}, Budget::of(clock_, deadline));
        if (!seen) return std::unexpected(seen.error());
        if (!*seen) return {};
        return read_history((*seen)->front(), query.which);
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        // The place comes first, then the look: what is said in between is not missed.
        const auto place =
            listener_.enter(watch.ticket ? channel_of(*watch.ticket) : "", ask_watch(statements_, clock_, watch));
        std::optional<bool> has_come;
        if (place->seen) has_come = read_watch(*place->seen, watch);
        milliseconds pause{20};
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            if (!has_come) {
                const auto seen = look_at(watch, deadline);
                // A look that is cut off by the end of the wait is no failure of the store.
                if (!seen && deadline.passed(clock_)) return std::nullopt;
                if (!seen) return std::unexpected(seen.error());
                has_come = *seen;
            }
            if (*has_come) return look_at_own(watch, deadline);
            has_come.reset();
            pause = place->hears() ? longest_sleep : std::min(pause * 2, longest_sleep);
            const milliseconds time = std::min(deadline.remaining(clock_), between(pause / 2, pause));
            if (place->sleep(time, watch.stop)) return look_at_own(watch, deadline);
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {settings_.url, store_id_, standing_.grade, standing_.reasons};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const Budget budget = Budget::of(clock_, deadline);
        auto connection = pool_.take(budget);
        if (!connection) return {{"reachable", false, connection.error().message}};
        const auto facts = facts_of(**connection, clock_, budget);
        pool_.give(std::move(*connection));
        if (!facts) return {{"reachable", false, facts.error().message}};
        const auto seen = look({}, budget);
        std::vector<Finding> findings{{"reachable", true, settings_.url}};
        findings.push_back({"format", seen.has_value(),
                            !seen   ? seen.error().message
                            : *seen ? "1, in the schema " + settings_.schema
                                    : "not created yet; the first use will"});
        std::ranges::move(findings_of(*facts, clock_), std::back_inserter(findings));
        return findings;
    }

private:
    using Answers = std::vector<Rows>;

    Result<std::vector<Reply>> apply_alone(std::span<const Request> requests, const Budget& budget) {
        auto replies = apply_all(requests, budget, Busy::wait);
        if (!replies) return std::unexpected(std::move(replies.error().error));
        return std::move(*replies);
    }

    std::expected<std::vector<Reply>, Setback> apply_all(std::span<const Request> requests, const Budget& budget,
                                                         Busy busy) {
        Context context{.settings = settings_,
                        .statements = statements_,
                        .clock = clock_,
                        .keeper = settings_.session ? &keeper_ : nullptr,
                        .knowledge = settings_.session ? nullptr : &knowledge_,
                        .busy = busy};
        std::optional<Error> doubt;
        const auto failed = [&](Error error) { return std::unexpected(Setback{doubt.value_or(std::move(error))}); };
        int conflicts = 0;
        bool reconnected = false;
        bool created = false;
        while (true) {
            auto connection = pool_.take(budget);
            if (!connection) return failed(connection.error());
            // Before it is asked: that nothing was there yet does not say that the store is gone, although another
            // thread has created it meanwhile.
            context.store_id = info().store_id;
            const bool was_there = context.store_id.has_value();
            auto applied = apply_once(**connection, context, requests, budget);
            if (applied) {
                pool_.give(std::move(*connection));
                remember(applied->store_id);
                // What is still on its way fits only to what was there before, and not to what was granted just now. A
                // refusal has changed nothing, and so nothing is sure.
                if (doubt && !std::ranges::all_of(applied->replies, &Reply::has_value)) return failed(*doubt);
                return std::move(applied->replies);
            }
            const Obstacle& obstacle = applied.error();
            switch (obstacle.remedy) {
                case Obstacle::Remedy::create: {
                    const auto ready =
                        created ? std::unexpected(obstacle.error) : create(**connection, was_there, budget);
                    if (!ready) return failed(ready.error());
                    created = true;
                    break;
                }
                case Obstacle::Remedy::repeat:
                    if (++conflicts > most_conflicts || budget.over()) return failed(obstacle.error);
                    std::this_thread::sleep_for(between(milliseconds{1}, milliseconds{10 << conflicts}));
                    break;
                case Obstacle::Remedy::reconnect:
                    if (reconnected || budget.over()) return failed(obstacle.error);
                    reconnected = true;
                    pool_.drop_idle();
                    break;
                case Obstacle::Remedy::look:
                    if (doubt || budget.over()) return failed(obstacle.error);
                    doubt = obstacle.error;
                    context.doubt = obstacle.doubt;
                    pool_.drop_idle();
                    break;
                case Obstacle::Remedy::wait:
                    pool_.give(std::move(*connection));
                    if (doubt) return failed(*doubt);
                    return std::unexpected(Setback{obstacle.error, true, obstacle.busy});
                case Obstacle::Remedy::none: pool_.give(std::move(*connection)); return failed(obstacle.error);
            }
            pool_.give(std::move(*connection));
        }
    }

    /// Lets go of the advisory lock of a lease that this request has not got, or has ended.
    void release_session(const Request& request, const Reply& reply) {
        if (const auto* acquire = std::get_if<Acquire>(&request)) {
            if (!reply) keeper_.let_go(acquire->name, acquire->as.lock_id);
        } else if (const auto* renew = std::get_if<Renew>(&request)) {
            if (!reply && reply.error().code == Errc::lock_not_held) keeper_.let_go(renew->name, renew->as.lock_id);
        } else if (const auto* release = std::get_if<Release>(&request)) {
            keeper_.let_go(release->name, release->as.lock_id);
        } else if (const auto* cancel = std::get_if<Cancel>(&request)) {
            keeper_.let_go(cancel->name, cancel->as.lock_id);
        } else if (const auto* transfer = std::get_if<Transfer>(&request)) {
            if (reply) keeper_.let_go(transfer->name, transfer->as.lock_id);
        }
    }

    /// Empty if nobody has created the store.
    Result<std::optional<View>> view_of(const Wanted& wanted, Deadline deadline) {
        const auto seen = look({ask_view(statements_, clock_, {&wanted, 1})}, Budget::of(clock_, deadline));
        if (!seen) return std::unexpected(seen.error());
        if (!*seen) return std::nullopt;
        return read_view((*seen)->front());
    }

    /// Whether the lock was handed on to who waits; and who comes next, so that giving it back takes one round trip.
    Result<std::optional<HandedOn>> look_at_own(const Watch& watch, Deadline deadline) {
        if (!watch.ticket) return std::nullopt;
        const Boottime before = clock_.boottime();
        const Wanted wanted{.name = watch.name, .depth = 1};
        auto view = view_of(wanted, deadline);
        if (!view) return std::unexpected(view.error());
        if (!*view) return std::nullopt;
        Result<LockView>& lock = (*view)->locks.at(watch.name);
        if (!lock) return std::unexpected(lock.error());
        auto handed_on =
            HandedOn::to(*watch.ticket, kernel::status_of(lock->record, lock->waiters, (*view)->now), before);
        if (!handed_on || lock->moved || !lock->moved_tickets.empty()) return handed_on;
        Memory::Lock known{std::move(lock->record), std::move((*view)->records.at(watch.name)), std::nullopt};
        const auto first = std::ranges::min_element(lock->tickets, {}, [&](const kernel::Ticket& ticket) {
            return std::pair(ticket.expires_at <= (*view)->now, ticket.number);
        });
        if (first != lock->tickets.end()) known.first = {*first, (*view)->places.at(first->lock_id)};
        knowledge_.locks.remember(std::move(known));
        return handed_on;
    }

    /// Whether what the watch waits for may have happened.
    Result<bool> look_at(const Watch& watch, Deadline deadline) {
        const auto seen = look({ask_watch(statements_, clock_, watch)},
                               Budget::of(std::max(deadline.remaining(clock_), milliseconds{200})));
        if (!seen) return std::unexpected(seen.error());
        return *seen ? read_watch((*seen)->front(), watch) : watch.ticket.has_value() || watch.seen_seq != 0;
    }

    /// Reads one moment of the store, in one round trip. Empty if nobody has created it.
    Result<std::optional<Answers>> look(std::vector<Statement> questions, const Budget& budget) {
        for (bool again = true;; again = false) {
            auto connection = pool_.take(budget);
            if (!connection) return std::unexpected(connection.error());
            std::vector<Statement> trip{begin_look(), enter(statements_, budget)};
            std::ranges::copy(questions, std::back_inserter(trip));
            trip.emplace_back("COMMIT");
            Trip seen = (*connection)->run(trip, budget);
            if (seen.fault) (*connection)->send_only(Statement("ROLLBACK"));
            const bool lost = !(*connection)->usable();
            pool_.give(std::move(*connection));
            if (seen.fault && (lost || seen.fault->is_strangers()) && again && !budget.over()) {
                if (lost) pool_.drop_idle();
                continue;
            }
            return read(std::move(seen));
        }
    }

    Result<std::optional<Answers>> read(Trip seen) {
        constexpr std::size_t before = 2;  // BEGIN and `enter`.
        if (seen.fault && seen.fault->at == 1 && is_missing(*seen.fault)) return std::nullopt;
        if (seen.answers.size() >= before) {
            const auto identity = read_identity(seen.answers[1]);
            if (!identity) return std::unexpected(identity.error());
            remember(*identity);
        }
        if (seen.fault) return std::unexpected(error_of(*seen.fault, "read the locks"));
        return Answers(std::make_move_iterator(seen.answers.begin() + before),
                       std::make_move_iterator(seen.answers.end()));
    }

    Result<void> create(Connection& connection, bool was_there, const Budget& budget) {
        // One that was there and is gone is not created again: its locks may be held, and an empty store would give
        // them to somebody else.
        if (was_there)
            return fail(Errc::store_unavailable,
                        "the schema " + settings_.schema + " is gone from the database; nothing was changed");
        return create_store(connection, settings_, budget);
    }

    void remember(const StoreId& store_id) {
        const std::scoped_lock lock(mutex_);
        store_id_ = store_id;
    }

    const Settings settings_;
    const Clock& clock_;
    const Statements statements_;
    Pool pool_;
    Listener listener_;
    Keeper keeper_;          ///< Used with session=on.
    Knowledge knowledge_{};  ///< Used without, as what follows.
    Gathering gathering_;
    Standing standing_{};  ///< Set before anybody else knows this object.

    mutable std::mutex mutex_;
    std::optional<StoreId> store_id_{};  ///< Guarded by mutex_.
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(base::Url url, const Clock& clock) {
    auto settings = settings_of(std::move(url));
    if (!settings) return std::unexpected(settings.error());
    auto store = std::make_unique<PostgresStore>(std::move(*settings), clock);
    if (auto checked = store->check(); !checked) return std::unexpected(checked.error());
    return store;
}

}  // namespace holdfast::stores
