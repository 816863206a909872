#include "stores/postgres/postgres_store.hpp"

#include "base/jitter.hpp"
#include "kernel/step.hpp"
#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
#include "stores/postgres/apply.hpp"
#include "stores/postgres/codec.hpp"
#include "stores/postgres/grade.hpp"
#include "stores/postgres/optimistic.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/session.hpp"
#include "stores/postgres/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace holdfast::stores {
namespace {

using namespace postgres;
using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

constexpr milliseconds longest_sleep{1000};
/// For callers without a deadline: how long the server may be silent, for example because a row is locked.
constexpr milliseconds longest_wait{30'000};

class PostgresStore final : public Store {
public:
    PostgresStore(Settings settings, const Clock& clock)
        : settings_(std::move(settings)),
          clock_(clock),
          statements_(settings_),
          pool_([this](const CallBudget& budget) { return Connection::open(settings_, budget); }),
          listener_(settings_),
          keeper_(settings_),
          gathering_(
              clock,
              [this](auto requests, Deadline deadline) {
                  return apply_all(requests, budget_for(deadline), Busy::report);
              },
              [this](auto requests, Deadline deadline) { return apply_alone(requests, budget_for(deadline)); }) {}

    /// Asks the server what it promises, and looks at a store that is there.
    Result<void> check() {
        const CallBudget budget(milliseconds{10'000});
        const auto facts = server_facts(budget);
        if (!facts) return std::unexpected(facts.error());
        grading_ = grading_of(*facts);
        const auto seen = look({}, budget);
        if (!seen) return std::unexpected(seen.error());
        if (settings_.session) return keeper_.connect(budget);
        return {};
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        if (!settings_.session) return gathering_.apply(requests, deadline);
        const CallBudget budget = budget_for(deadline);
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
        const auto seen = look({ask_list(statements_, clock_, query)}, budget_for(deadline));
        if (!seen) return std::unexpected(seen.error());
        if (!*seen) return {};
        return read_list((*seen)->front());
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        const auto seen = look({ask_history(statements_, query)}, budget_for(deadline));
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
            const milliseconds time = std::min(deadline.remaining(clock_), base::random_between(pause / 2, pause));
            if (place->sleep(time, watch.stop)) return look_at_own(watch, deadline);
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {settings_.url, identity_ ? std::optional(identity_->store_id) : std::nullopt, grading_.grade,
                grading_.reasons, identity_ && identity_->was_used};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const CallBudget budget = budget_for(deadline);
        const auto facts = server_facts(budget);
        if (!facts) return {{"reachable", false, facts.error().message}};
        const auto seen = look({}, budget);
        std::vector<Finding> findings{{"reachable", true, settings_.url}};
        const auto identity = known();
        findings.push_back({"format", seen.has_value(),
                            !seen   ? seen.error().message
                            : *seen ? format_in_words(*identity)
                                    : "not created yet; the first use will"});
        std::ranges::move(findings_of(*facts, clock_), std::back_inserter(findings));
        if (!seen || !*seen) return findings;
        const auto connection = pool_.take(budget);
        if (!connection) return {{"reachable", false, connection.error().message}};
        const bool is_marked = identity->is_old() || identity->was_used;
        std::ranges::move(examine_use(**connection, settings_, is_marked, budget), std::back_inserter(findings));
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    using Answers = std::vector<Rows>;

    [[nodiscard]] CallBudget budget_for(Deadline deadline) const { return {clock_, deadline, longest_wait}; }

    Result<Facts> server_facts(const CallBudget& budget) {
        const auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        return facts_of(**connection, clock_, budget);
    }

    Result<std::vector<Reply>> apply_alone(std::span<const Request> requests, const CallBudget& budget) {
        auto replies = apply_all(requests, budget, Busy::wait);
        if (!replies) return std::unexpected(std::move(replies.error().error));
        return std::move(*replies);
    }

    AttemptResult apply_all(std::span<const Request> requests, const CallBudget& budget, Busy busy) {
        bool created = false;
        bool upgraded = false;
        return apply_with_retries(
            [&](const AttemptTerms& terms) -> AttemptResult {
                auto connection = terms.wants_fresh_connection ? pool_.take_fresh(budget) : pool_.take(budget);
                if (!connection) return std::unexpected(AttemptError{Kind::final, connection.error()});
                const Context context{.settings = settings_,
                                      .statements = statements_,
                                      .clock = clock_,
                                      .keeper = settings_.session ? &keeper_ : nullptr,
                                      .optimistic = settings_.session ? nullptr : &optimistic_,
                                      // Read before the server is asked: if another thread creates the store
                                      // meanwhile, an answer that there is none does not mean that it is gone.
                                      .store = known(),
                                      .busy = busy,
                                      .doubt = terms.doubt};
                auto applied = apply_once(**connection, context, requests, budget);
                if (!applied && applied.error().no_store && !created) {
                    const auto ready = create(**connection, context.store.has_value(), budget);
                    created = true;
                    applied.error().kind = ready ? Kind::prepared : Kind::final;
                    if (!ready) applied.error().error = ready.error();
                }
                if (!applied && applied.error().old_format && !upgraded) {
                    const auto ready = upgrade_store(**connection, settings_, budget);
                    upgraded = true;
                    applied.error().kind = ready ? Kind::prepared : Kind::final;
                    if (!ready) applied.error().error = ready.error();
                }
                if (!applied) return std::unexpected(static_cast<AttemptError&&>(applied.error()));
                remember(applied->store);
                return std::move(applied->replies);
            },
            [&] { return budget.over(); });
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
        const auto seen = look({ask_view(statements_, clock_, {&wanted, 1})}, budget_for(deadline));
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
        KnownLock known{std::move(lock->record), std::move((*view)->records.at(watch.name)), std::nullopt};
        const auto first = std::ranges::min_element(lock->tickets, {}, [&](const kernel::Ticket& ticket) {
            return std::pair(ticket.expires_at <= (*view)->now, ticket.number);
        });
        if (first != lock->tickets.end()) known.first = {*first, (*view)->places.at(first->lock_id)};
        optimistic_.remember(std::move(known));
        return handed_on;
    }

    /// Whether what the watch waits for may have happened.
    Result<bool> look_at(const Watch& watch, Deadline deadline) {
        const auto seen = look({ask_watch(statements_, clock_, watch)},
                               CallBudget(std::clamp(deadline.remaining(clock_), milliseconds{200}, longest_wait)));
        if (!seen) return std::unexpected(seen.error());
        return *seen ? read_watch((*seen)->front(), watch) : watch.ticket.has_value() || watch.seen_seq != 0;
    }

    /// Reads one moment of the store, in one round trip. Empty if nobody has created it.
    Result<std::optional<Answers>> look(std::vector<Statement> questions, const CallBudget& budget) {
        bool wants_fresh_connection = false;
        for (bool again = true;; again = false) {
            auto connection = wants_fresh_connection ? pool_.take_fresh(budget) : pool_.take(budget);
            if (!connection) return std::unexpected(connection.error());
            const bool as_old = is_old_;
            std::vector<Statement> trip{begin_look(),
                                        as_old ? enter_old(statements_, budget) : enter(statements_, budget)};
            std::ranges::copy(questions, std::back_inserter(trip));
            trip.emplace_back("COMMIT");
            Trip seen = (*connection)->run(trip, budget);
            if (seen.fault) (*connection)->send_only(Statement("ROLLBACK"));
            const bool lost = !(*connection)->is_usable();
            if (seen.fault && (lost || seen.fault->is_strangers()) && again && !budget.over()) {
                wants_fresh_connection = lost;
                continue;
            }
            if (seen.fault && seen.fault->at == 1 && has_no_mark(*seen.fault) && !as_old) {
                is_old_ = true;
                continue;
            }
            auto answers = read(std::move(seen));
            // Somebody has upgraded it since, so now it can be asked whether it was used.
            if (as_old && !is_old_) continue;
            return answers;
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

    Result<void> create(Connection& connection, bool was_there, const CallBudget& budget) {
        // One that was there and is gone is not created again: its locks may be held, and an empty store would give
        // them to somebody else.
        if (was_there)
            return fail(Errc::store_unavailable,
                        "the schema " + settings_.schema + " is gone from the database; nothing was changed");
        return create_store(connection, settings_, budget);
    }

    void remember(const Identity& identity) {
        is_old_ = identity.is_old();
        const std::scoped_lock lock(mutex_);
        // What was read before somebody else wrote the first lock may arrive after it.
        const bool was_used = identity_ && identity_->store_id == identity.store_id && identity_->was_used;
        identity_ = identity;
        identity_->was_used |= was_used && !identity.is_old();
    }

    std::optional<Identity> known() const {
        const std::scoped_lock lock(mutex_);
        return identity_;
    }

    std::string format_in_words(const Identity& identity) const {
        return fmt::format("{}, in the schema {}{}", identity.format, settings_.schema,
                           identity.is_old() ? fmt::format("; the first change makes it {}", our_format) : "");
    }

    const Settings settings_;
    const Clock& clock_;
    const Statements statements_;
    Pool<Connection> pool_;
    Listener listener_;
    Keeper keeper_;            ///< Used with session=on.
    Optimistic optimistic_{};  ///< Used without, like what follows.
    Gathering gathering_;
    base::Grading grading_{};  ///< Set before anybody else knows this object.

    mutable std::mutex mutex_;
    std::optional<Identity> identity_{};  ///< Guarded by mutex_.
    std::atomic<bool> is_old_ = false;    ///< Reading has to do without the mark of use.
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
