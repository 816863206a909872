#include "stores/mysql/mysql_store.hpp"

#include "kernel/step.hpp"
#include "stores/common/gathering.hpp"
#include "stores/common/known_identity.hpp"
#include "stores/common/records.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/common/windowed_events.hpp"
#include "stores/mysql/apply.hpp"
#include "stores/mysql/grade.hpp"
#include "stores/mysql/optimistic.hpp"
#include "stores/mysql/read.hpp"
#include "stores/mysql/schema.hpp"
#include "stores/mysql/server.hpp"
#include "stores/mysql/session.hpp"
#include "stores/mysql/wait.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores {
namespace {

using namespace mysql;
using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// For opening a store, which has no deadline of its own.
constexpr milliseconds time_to_open{10'000};
/// For a poll, which has no deadline either and delays the polls of other watches.
constexpr milliseconds time_to_poll{5000};
/// Of a MEDIUMBLOB.
constexpr std::size_t largest_value = (std::size_t{1} << 24) - 1;

Error gone(const Address& address) {
    return {.code = Errc::store_unavailable,
            .message = "the store in " + address.shown + " is gone; nothing was changed",
            .store_is_lost = true};
}

/// The result of reading the tables. Without a store there are no answers.
struct Seen {
    bool exists = false;
    Judging judging{};
    Answers answers{};
};

/// After the clock is read, a client sends what it writes before the deadline of its call, or not at all, and the
/// server waits for a row within that time. A commit that is sent takes as long as the disk and the replicas that it
/// waits for. The nodes of TiDB read clocks of their own, which differ by less than five seconds.
constexpr EventWindow event_window{std::chrono::seconds{120}};

class MysqlStore final : public WindowedStore {
public:
    MysqlStore(Address address, bool with_sessions, const Clock& clock)
        : WindowedStore(clock, event_window),
          clock_(clock),
          server_(std::move(address), clock),
          gathering_(clock, [this](auto requests, Deadline deadline,
                                   Busy busy) { return apply_with({}, requests, deadline, busy); }),
          hub_(clock, std::make_unique<WatchSource>(clock, [this](const Sql& sql) { return poll(sql); })) {
        if (with_sessions) sessions_.emplace(server_);
    }

    /// Connects, and checks a store that is there.
    Result<void> check() {
        const Deadline deadline = Deadline::in(clock_, time_to_open);
        if (auto seen = look({}, deadline); !seen) return std::unexpected(seen.error());
        grading_ = grading_of(server_.facts());
        return sessions_ ? sessions_->check(deadline) : Result<void>();
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        // A user that may write to a replica would split the store in two.
        if (server_.facts().read_only)
            if (const auto fresh = server_.take_fresh(deadline); !fresh) return std::unexpected(fresh.error());
        if (server_.facts().read_only) return std::unexpected(server_.is_read_only());
        const auto store_id = existing(deadline);
        if (!store_id) return std::unexpected(store_id.error());
        if (requests.empty()) return {};

        if (!sessions_) return gathering_.apply(requests, deadline);
        const auto view = sessions_->prepare(Batch(requests).wanted(), deadline);
        if (!view) return std::unexpected(view.error());
        auto replies = to_result(apply_with(*view, requests, deadline, Busy::wait));
        if (!replies && replies.error().code == Errc::outcome_unknown)
            sessions_->settle_unknown(requests, *view);
        else
            sessions_->settle(requests, replies ? std::span<const Reply>(*replies) : std::span<const Reply>(), *view,
                              deadline);
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        auto seen = look(inspect_query(name, clock_), deadline);
        if (!seen) return std::unexpected(seen.error());
        if (!seen->exists) return kernel::status_of(kernel::blank(name), 0, seen->judging.now);
        return inspected(seen->answers, name, seen->judging);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        auto seen = look(list_query(query, clock_), deadline);
        if (!seen) return std::unexpected(seen.error());
        if (!seen->exists) return {};
        return listed(seen->answers.front(), query, seen->judging);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        auto seen = look(history_query(query), deadline);
        if (!seen) return std::unexpected(seen.error());
        if (!seen->exists) return {};
        return events_in(seen->answers.front(), query);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .has_sessions = true,
                // MySQL notifies nobody.
                .pushes = false,
                // A batch with a lock that cannot be changed is applied request by request.
                .commits_batches_as_one = false,
                // InnoDB shows a change before it is on disk.
                .shows_only_durable = false,
                .largest_value = largest_value};
    }

    std::optional<StoreId> store_id() const override { return identity_.store_id(); }

    std::optional<int> duplicate_session() const override { return sessions_ ? sessions_->duplicate() : std::nullopt; }

    StoreInfo info() const override {
        return {server_.address().shown, identity_.store_id(), grading_.grade,
                grading_.reasons,        identity_.was_used(), server_.facts().read_only};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        // Each new connection asks the server for its facts.
        if (const auto fresh = server_.take_fresh(deadline); !fresh)
            return {{"reachable", false, fresh.error().message}};
        const auto seen = look({}, deadline);
        std::vector<Finding> findings{
            {"reachable", seen.has_value(), seen ? server_.address().shown : seen.error().message}};
        if (!seen) return findings;
        std::ranges::move(examine_server(server_.facts(), server_.address()), std::back_inserter(findings));
        findings.push_back(examine_clock(seen->judging.now, clock_));
        const auto identity = identity_.get();
        findings.push_back(
            {"format", true, seen->exists ? format_in_words(*identity) : "not created yet; the first use will"});
        if (!seen->exists) return findings;
        auto connection = server_.take(deadline);
        if (!connection) return {{"reachable", false, connection.error().message}};
        const bool is_marked = !identity->has_mark() || identity->was_used;
        std::ranges::move(examine_use(**connection, is_marked, deadline), std::back_inserter(findings));
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    AttemptResult apply_with(const SessionView& sessions, std::span<const Request> requests, Deadline deadline,
                             Busy busy) {
        const auto store_id = existing(deadline);
        if (!store_id) return std::unexpected(AttemptError{Kind::final, store_id.error()});
        auto result = apply_with_retries(
            [&](const AttemptTerms& terms) -> AttemptResult {
                auto connection = terms.wants_fresh_connection ? server_.take_fresh(deadline) : server_.take(deadline);
                if (!connection) return std::unexpected(AttemptError{Kind::final, connection.error()});
                return apply_once(**connection, sessions, *store_id, requests, deadline, busy, terms.doubt.get());
            },
            [&] { return deadline.passed(clock_); });
        if (result || result.error().kind != Kind::one_spoils_all) return result;
        if (requests.size() == 1) return std::vector<Reply>{std::unexpected(result.error().error)};
        return apply_each(sessions, requests, deadline, busy);
    }

    AttemptResult apply_once(Connection& connection, const SessionView& sessions, const StoreId& store_id,
                             std::span<const Request> requests, Deadline deadline, Busy busy, const InDoubt* doubt) {
        const ServerFacts facts = server_.facts();
        // The first lock of a store also marks the store as used, so whether the mark is there must be read first.
        if (!sessions_ && doubt == nullptr && identity_.was_used() && !deadline.passed(clock_)) {
            if (auto optimistic = OptimisticBatch::make(optimistic_, requests, store_id, facts, clock_)) {
                auto replies = optimistic->run(connection, deadline);
                if (replies && *replies) hub_.announce(optimistic->changes());
                if (replies) return std::move(*replies);
            }
        }
        Batch batch(requests, sessions_ ? Claims::dropped : Claims::kept);
        // If a batch is in doubt, wait for the rows: its transaction may still have locked them.
        Transaction transaction(connection, batch, facts, sessions, clock_, deadline,
                                doubt == nullptr ? busy : Busy::wait, doubt);
        auto replies = transaction.run(store_id);
        if (!replies) return replies;
        if (transaction.was_used()) identity_.remember_use();
        hub_.announce(batch.changes());
        if (sessions_) return replies;
        const Sight& sight = transaction.sight();
        optimistic_.clock.saw(sight.time, sight.sent, sight.received);
        learn(optimistic_, requests, *replies, batch.changes(), transaction.decided_at());
        return replies;
    }

    /// The store in our format. It is created if it was never there, and upgraded if it has an older one.
    Result<StoreId> existing(Deadline deadline) {
        if (const auto current = current_id()) return *current;
        if (auto seen = look({}, deadline); !seen) return std::unexpected(seen.error());
        if (const auto current = current_id()) return *current;
        auto connection = server_.take(deadline);
        if (!connection) return std::unexpected(connection.error());
        const auto before = identity_.get();
        auto made = before ? Result<Identity>(*before) : create(**connection, clock_, deadline);
        if (made && made->is_old()) made = upgrade(**connection, clock_, deadline);
        if (!made) return std::unexpected(made.error());
        if (before && before->store_id != made->store_id) return std::unexpected(gone(server_.address()));
        identity_.remember(*made);
        return made->store_id;
    }

    /// Applies each request in a batch of its own, so that one that cannot be applied does not fail the others.
    AttemptResult apply_each(const SessionView& sessions, std::span<const Request> requests, Deadline deadline,
                             Busy busy) {
        // A batch that several callers share is not split here: a caller that was answered must not hear `unknown`.
        if (busy == Busy::report)
            return std::unexpected(
                AttemptError{Kind::locks_busy, {Errc::store_unavailable, "a lock of the batch is damaged"}});
        std::vector<Reply> replies;
        for (const Request& request : requests) {
            auto one = apply_with(sessions, {&request, 1}, deadline, busy);
            if (!one && !replies.empty())
                return std::unexpected(AttemptError{Kind::final, {Errc::outcome_unknown, one.error().error.message}});
            if (!one) return one;
            replies.push_back(std::move(one->front()));
        }
        return replies;
    }

    /// For the watches. Empty if nobody has created the store.
    Result<std::optional<Answers>> poll(const Sql& sql) {
        auto seen = look(sql, Deadline::in(clock_, time_to_poll));
        if (!seen) return std::unexpected(seen.error());
        return seen->exists ? std::optional(std::move(seen->answers)) : std::nullopt;
    }

    /// Reads the store's identity, and `sql`. If the connection was dead, reads once more on another.
    Result<Seen> look(const Sql& sql, Deadline deadline) {
        Sql packet = identity_query(clock_);
        if (!sql.empty()) packet << "; " << sql;
        packet << "; COMMIT";
        // Read before the query is sent: if another thread creates the store meanwhile, the answer `no store` does not
        // mean that it is gone.
        const auto before = identity_.get();
        auto connection = server_.take(deadline);
        if (!connection) return std::unexpected(connection.error());
        auto answers = (*connection)->run(packet, deadline);
        if (!answers && answers.error().lost() && connection->was_idle() && !deadline.passed(clock_)) {
            auto fresh = server_.take_fresh(deadline);
            if (!fresh) return std::unexpected(fresh.error());
            answers = (*fresh)->run(packet, deadline);
            return seen_in(answers, before, **fresh, deadline);
        }
        return seen_in(answers, before, **connection, deadline);
    }

    Result<Seen> seen_in(std::expected<Answers, Failure>& answers, const std::optional<Identity>& before,
                         Connection& connection, Deadline deadline) {
        // A transaction that stays open keeps others from altering the tables that it has read.
        if (!answers && (!connection.is_usable() || !connection.run(Sql("ROLLBACK"), deadline))) connection.discard();
        if (!answers && !answers.error().no_such_table())
            return std::unexpected(error_of(answers.error(), "read the locks"));
        auto identity = answers ? identity_in(answers->front()) : std::optional<Identity>();
        if (!identity) return std::unexpected(identity.error());
        // A store that is gone or was replaced must not be taken for one without locks.
        if (before && (!*identity || (*identity)->store_id != before->store_id))
            return std::unexpected(gone(server_.address()));
        if (!*identity) return without_store(connection, deadline);
        identity_.remember(**identity);
        answers->pop_back();
        answers->erase(answers->begin());
        return Seen{true, {(*identity)->now}, std::move(*answers)};
    }

    Result<Seen> without_store(Connection& connection, Deadline deadline) {
        auto answers = connection.run(Sql("SELECT ") << now_of(clock_), deadline);
        if (!answers) return std::unexpected(error_of(answers.error(), "read the server's clock"));
        const auto row = answers->front().next();
        return Seen{false, {Instant{milliseconds{row ? row->number(0) : 0}}}, {}};
    }

    /// The id of the store if it has our format.
    std::optional<StoreId> current_id() const {
        const auto known = identity_.get();
        return known && !known->is_old() ? std::optional(known->store_id) : std::nullopt;
    }

    static std::string format_in_words(const Identity& identity) {
        return fmt::format("{}{}", identity.format,
                           identity.is_old() ? fmt::format("; the first change makes it {}", our_format) : "");
    }

    const Clock& clock_;
    Server server_;
    std::optional<SessionLocks> sessions_{};  ///< With `?session=on`.
    Optimistic optimistic_{};                 ///< Used without sessions.
    Gathering gathering_;                     ///< Used without sessions.
    base::Grading grading_{};                 ///< Set once, before the store is shared.

    KnownIdentity<Identity> identity_{};  ///< Of the store that was seen first, as it was seen last.

    WakeHub hub_;  ///< Last, so that its thread ends before what it uses.
};

}  // namespace

Result<std::unique_ptr<Store>> open_mysql_store(base::Url url, const Clock& clock) {
    auto address = Address::of(url);
    if (!address) return std::unexpected(address.error());
    const auto sessions = url.take_switch("session", false);
    if (!sessions) return std::unexpected(sessions.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto store = std::make_unique<MysqlStore>(std::move(*address), *sessions, clock);
    if (auto checked = store->check(); !checked) return std::unexpected(checked.error());
    return store;
}

}  // namespace holdfast::stores
