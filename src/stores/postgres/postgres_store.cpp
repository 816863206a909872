#include "stores/postgres/postgres_store.hpp"

#include "kernel/step.hpp"
#include "stores/common/gathering.hpp"
#include "stores/common/known_identity.hpp"
#include "stores/common/pool.hpp"
#include "stores/common/records.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/common/windowed_events.hpp"
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

namespace holdfast::stores {
namespace {

using namespace postgres;
using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// For callers without a deadline: how long the server may be silent, for example because a row is locked.
constexpr milliseconds longest_wait{30'000};
/// For a look at watches, which has no deadline of its own and delays the looks at other watches.
constexpr milliseconds longest_look{5000};
/// PostgreSQL's limit for a field.
constexpr std::size_t largest_value = (std::size_t{1} << 30) - 1;

/// After the clock is read, the server ends a transaction whose client is silent for `longest_pause`, and the
/// statements that write within `longest_wait`. A commit that is sent takes as long as the disk and the standbys that
/// it waits for.
constexpr EventWindow event_window{std::chrono::seconds{120}};
static_assert(event_window.length > longest_pause + 2 * longest_wait);

class PostgresStore final : public WindowedStore {
public:
    PostgresStore(Settings settings, const Clock& clock)
        : WindowedStore(clock, event_window),
          settings_(std::move(settings)),
          clock_(clock),
          statements_(settings_),
          pool_([this](const base::CallBudget& budget) { return connect_to_read(settings_, budget); }),
          keeper_(settings_),
          gathering_(clock, [this](auto requests, Deadline deadline,
                                   Busy busy) { return apply_all(requests, budget_for(deadline), busy); }),
          hub_(clock, std::make_unique<WatchSource>(
                          settings_, statements_, clock, optimistic_, [this](std::vector<Statement> questions) {
                              return look(std::move(questions), base::CallBudget(longest_look));
                          })) {}

    /// Asks the server what it promises, and looks at a store that is there.
    Result<void> check() {
        const base::CallBudget budget(milliseconds{10'000});
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
        const base::CallBudget budget = budget_for(deadline);
        // Take the advisory lock first: a lease whose advisory lock is free may be taken over by any client.
        keeper_.repair(budget);
        std::vector<std::pair<LockName, LockId>> fresh;
        const auto hold = [&](const LockName& name, const LockId& lock_id) {
            if (keeper_.hold(name, lock_id, budget)) fresh.emplace_back(name, lock_id);
        };
        for (const Request& request : requests) {
            if (const auto* acquire = std::get_if<Acquire>(&request)) hold(acquire->name, acquire->as.lock_id);
            // The lease may have been granted before the server noticed the end of the previous holder's session.
            if (const auto* renew = std::get_if<Renew>(&request)) hold(renew->name, renew->as.lock_id);
        }
        auto replies = to_result(apply_all(requests, budget, Busy::wait));
        for (std::size_t i = 0; replies && i < requests.size(); ++i) release_session(requests[i], (*replies)[i]);
        // If the outcome is unknown, a lease that needs the advisory lock may exist.
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
        return read_list((*seen)->front(), query);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        const auto seen = look({ask_history(statements_, query)}, budget_for(deadline));
        if (!seen) return std::unexpected(seen.error());
        if (!*seen) return {};
        return read_history((*seen)->front(), query.which);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .has_sessions = true,
                .pushes = true,
                .commits_batches_as_one = true,
                .shows_only_durable = true,
                .largest_value = largest_value};
    }

    std::optional<StoreId> store_id() const override { return identity_.store_id(); }

    std::optional<int> duplicate_session() const override { return keeper_.duplicate(); }

    StoreInfo info() const override {
        return {settings_.url,    identity_.store_id(), grading_.grade,
                grading_.reasons, identity_.was_used(), may_be_stale_};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const base::CallBudget budget = budget_for(deadline);
        const auto facts = server_facts(budget);
        if (!facts) return {{"reachable", false, facts.error().message}};
        const auto seen = look({}, budget);
        std::vector<Finding> findings{{"reachable", true, settings_.url}};
        const auto identity = identity_.get();
        findings.push_back({"format", seen.has_value(),
                            !seen   ? seen.error().message
                            : *seen ? format_in_words(*identity)
                                    : "not created yet; the first use will"});
        std::ranges::move(findings_of(*facts, clock_), std::back_inserter(findings));
        if (!seen || !*seen) return findings;
        const auto connection = pool_.take(budget);
        if (!connection) return {{"reachable", false, connection.error().message}};
        const bool is_marked = !identity->has_mark() || identity->was_used;
        std::ranges::move(examine_use(**connection, settings_, is_marked, budget), std::back_inserter(findings));
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    using Answers = std::vector<Rows>;

    [[nodiscard]] base::CallBudget budget_for(Deadline deadline) const { return {clock_, deadline, longest_wait}; }

    Result<Facts> server_facts(const base::CallBudget& budget) {
        const auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        return facts_of(**connection, clock_, budget);
    }

    /// A standby may have become the primary since it was connected to.
    Result<Pool<Connection>::Borrowed> take_for_change(bool fresh, const base::CallBudget& budget) {
        if (!fresh) {
            auto connection = pool_.take(budget);
            if (!connection || !(*connection)->is_standby()) return connection;
        }
        return pool_.take_fresh(budget);
    }

    AttemptResult apply_all(std::span<const Request> requests, const base::CallBudget& budget, Busy busy) {
        bool created = false;
        bool upgraded = false;
        return apply_with_retries(
            [&](const AttemptTerms& terms) -> AttemptResult {
                auto connection = take_for_change(terms.wants_fresh_connection, budget);
                if (!connection) return std::unexpected(AttemptError{Kind::final, connection.error()});
                if ((*connection)->is_standby())
                    return std::unexpected(AttemptError{Kind::final, is_standby(settings_)});
                const Context context{.settings = settings_,
                                      .statements = statements_,
                                      .clock = clock_,
                                      .keeper = settings_.session ? &keeper_ : nullptr,
                                      .optimistic = settings_.session ? nullptr : &optimistic_,
                                      // Read before the query is sent: if another thread creates the store meanwhile,
                                      // the answer `no store` does not mean that it is gone.
                                      .store = identity_.get(),
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

    /// Releases the advisory lock if this request was refused its lease, or has ended it.
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

    /// Reads one moment of the store, in one round trip. Empty if nobody has created it.
    Result<std::optional<Answers>> look(std::vector<Statement> questions, const base::CallBudget& budget) {
        bool wants_fresh_connection = false;
        for (bool again = true;; again = false) {
            auto connection = wants_fresh_connection ? pool_.take_fresh(budget) : pool_.take(budget);
            if (!connection) return std::unexpected(connection.error());
            may_be_stale_ = (*connection)->is_standby();
            const bool as_old = lacks_mark_;
            std::vector<Statement> trip{begin_look(),
                                        as_old ? enter_old(statements_, budget) : enter(statements_, budget)};
            std::ranges::copy(questions, std::back_inserter(trip));
            trip.emplace_back("COMMIT");
            Trip seen = (*connection)->run(trip, budget);
            if (seen.fault) (*connection)->send_only(Statement("ROLLBACK"));
            const bool lost = !(*connection)->is_usable();
            if (seen.fault && (lost || seen.fault->session_was_replaced()) && again && !budget.over()) {
                wants_fresh_connection = lost;
                continue;
            }
            if (seen.fault && seen.fault->at == 1 && has_no_mark(*seen.fault) && !as_old) {
                lacks_mark_ = true;
                continue;
            }
            auto answers = read(std::move(seen));
            // Another client has upgraded the store since, so the query for the mark of use works now.
            if (as_old && !lacks_mark_) continue;
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

    Result<void> create(Connection& connection, bool was_there, const base::CallBudget& budget) {
        // One that was there and is gone is not created again: its locks may be held, and an empty store would give
        // them to somebody else.
        if (was_there)
            return std::unexpected(
                Error{.code = Errc::store_unavailable,
                      .message = "the schema " + settings_.schema + " is gone from the database; nothing was changed",
                      .store_is_lost = true});
        return create_store(connection, settings_, budget);
    }

    void remember(const Identity& identity) {
        lacks_mark_ = !identity.has_mark();
        identity_.remember(identity);
    }

    std::string format_in_words(const Identity& identity) const {
        return fmt::format("{}, in the schema {}{}", identity.format, settings_.schema,
                           identity.is_old() ? fmt::format("; the first change makes it {}", our_format) : "");
    }

    const Settings settings_;
    const Clock& clock_;
    const Statements statements_;
    Pool<Connection> pool_;
    Keeper keeper_;            ///< Used with sessions.
    Optimistic optimistic_{};  ///< Used without sessions, like `gathering_`.
    Gathering gathering_;
    base::Grading grading_{};  ///< Set once, before the store is shared.

    KnownIdentity<Identity> identity_{};
    std::atomic<bool> lacks_mark_ = false;  ///< The store's format has no mark of use, so it must not be read.
    std::atomic<bool> may_be_stale_ = false;

    WakeHub hub_;  ///< Last, so that its thread ends before what it uses.
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
