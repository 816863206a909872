#include "stores/mysql/mysql_store.hpp"

#include "kernel/step.hpp"
#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
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
#include <mutex>

namespace holdfast::stores {
namespace {

using namespace mysql;
using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// For opening a store, which has no deadline of its own.
constexpr milliseconds patience{10'000};

Error gone(const Address& address) {
    return {Errc::store_unavailable, "the store in " + address.shown + " is gone; nothing was changed"};
}

/// What a look at the tables gave. Without a store there are no answers.
struct Seen {
    bool exists = false;
    Judging judging{};
    Answers answers{};
};

class MysqlStore final : public Store {
public:
    MysqlStore(Address address, bool with_sessions, const Clock& clock)
        : clock_(clock),
          server_(std::move(address), clock),
          gathering_(
              clock,
              [this](auto requests, Deadline deadline) { return apply_with({}, requests, deadline, Busy::report); },
              [this](auto requests, Deadline deadline) { return apply_alone({}, requests, deadline); }) {
        if (with_sessions) sessions_.emplace(server_);
    }

    /// Connects, and checks a store that is there.
    Result<void> check() {
        const Deadline deadline = Deadline::in(clock_, patience);
        if (auto seen = look({}, deadline); !seen) return std::unexpected(seen.error());
        grading_ = grading_of(server_.facts());
        return sessions_ ? sessions_->check(deadline) : Result<void>();
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        const auto store_id = existing(deadline);
        if (!store_id) return std::unexpected(store_id.error());
        if (requests.empty()) return {};

        if (!sessions_) return gathering_.apply(requests, deadline);
        const auto view = sessions_->prepare(Batch(requests).wanted(), deadline);
        if (!view) return std::unexpected(view.error());
        auto replies = apply_alone(*view, requests, deadline);
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

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        // The place comes first, then the look: what happens in between is not missed.
        Waiting::Place place = waiting_.enter(watch);
        PollRhythm rhythm;
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            // A look that is cut off costs a connection, so one that began in time may end a little later.
            const auto time = std::max(deadline.remaining(clock_), milliseconds{1000});
            auto seen = look(glance_query(watch, clock_), Deadline::in(clock_, time));
            if (!seen && deadline.passed(clock_)) return std::nullopt;
            if (!seen) return std::unexpected(seen.error());
            const Glance glance = seen->exists ? glance_in(seen->answers.front(), watch.ticket.has_value()) : Glance{};
            if (watch.ticket ? glance.my_turn : glance.seq != watch.seen_seq) return std::nullopt;
            place.sleep(std::min(rhythm.next(glance), deadline.remaining(clock_)));
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return {server_.address().shown, identity_ ? std::optional(identity_->store_id) : std::nullopt, grading_.grade,
                grading_.reasons, identity_ && identity_->was_used};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        // What the server is by now, it tells whoever connects.
        if (const auto fresh = server_.take_fresh(deadline); !fresh)
            return {{"reachable", false, fresh.error().message}};
        const auto seen = look({}, deadline);
        std::vector<Finding> findings{
            {"reachable", seen.has_value(), seen ? server_.address().shown : seen.error().message}};
        if (!seen) return findings;
        std::ranges::move(examine_server(server_.facts(), server_.address()), std::back_inserter(findings));
        findings.push_back(examine_clock(seen->judging.now, clock_));
        const auto identity = known();
        findings.push_back(
            {"format", true, seen->exists ? format_in_words(*identity) : "not created yet; the first use will"});
        if (!seen->exists) return findings;
        auto connection = server_.take(deadline);
        if (!connection) return {{"reachable", false, connection.error().message}};
        const bool is_marked = identity->is_old() || identity->was_used;
        std::ranges::move(examine_use(**connection, is_marked, deadline), std::back_inserter(findings));
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    Result<std::vector<Reply>> apply_alone(const SessionView& sessions, std::span<const Request> requests,
                                           Deadline deadline) {
        auto replies = apply_with(sessions, requests, deadline, Busy::wait);
        if (!replies) return std::unexpected(std::move(replies.error().error));
        return std::move(*replies);
    }

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
        // The first lock of a store comes with its mark of use, and it has to be read first whether that is there.
        if (!sessions_ && doubt == nullptr && was_used() && !deadline.passed(clock_)) {
            if (auto optimistic = OptimisticBatch::make(optimistic_, requests, store_id, facts, clock_)) {
                auto replies = optimistic->run(connection, deadline);
                if (replies && *replies) waiting_.wake(optimistic->changes());
                if (replies) return std::move(*replies);
            }
        }
        Batch batch(requests, sessions_ ? Claims::dropped : Claims::kept);
        // With a doubt, wait for the rows: the transaction in doubt may still have them.
        Transaction transaction(connection, batch, facts, sessions, clock_, deadline,
                                doubt == nullptr ? busy : Busy::wait, doubt);
        auto replies = transaction.run(store_id);
        if (!replies) return replies;
        if (transaction.was_used()) remember_use();
        waiting_.wake(batch.changes());
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
        const auto before = known();
        auto made = before ? Result<Identity>(*before) : create(**connection, clock_, deadline);
        if (made && made->is_old()) made = upgrade(**connection, clock_, deadline);
        if (!made) return std::unexpected(made.error());
        if (before && before->store_id != made->store_id) return std::unexpected(gone(server_.address()));
        remember(*made);
        return made->store_id;
    }

    /// Each request in a batch of its own, so that the one that cannot be applied spoils no other.
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

    /// Reads: the store's identity, and `sql`. On a connection that turns out to be dead, once more on another.
    Result<Seen> look(const Sql& sql, Deadline deadline) {
        Sql packet = identity_query(clock_);
        if (!sql.empty()) packet << "; " << sql;
        // Before it is asked: that nothing was there yet does not say that the store is gone, although another thread
        // has created it meanwhile.
        const auto before = known();
        auto connection = server_.take(deadline);
        if (!connection) return std::unexpected(connection.error());
        auto answers = (*connection)->look(packet, deadline);
        if (!answers && answers.error().lost() && connection->was_idle() && !deadline.passed(clock_)) {
            auto fresh = server_.take_fresh(deadline);
            if (!fresh) return std::unexpected(fresh.error());
            answers = (*fresh)->look(packet, deadline);
            return seen_in(answers, before, **fresh, deadline);
        }
        return seen_in(answers, before, **connection, deadline);
    }

    Result<Seen> seen_in(std::expected<Answers, Failure>& answers, const std::optional<Identity>& before,
                         Connection& connection, Deadline deadline) {
        if (!answers && !answers.error().no_such_table())
            return std::unexpected(error_of(answers.error(), "read the locks"));
        auto identity = answers ? identity_in(answers->front()) : std::optional<Identity>();
        if (!identity) return std::unexpected(identity.error());
        // One that was there and is gone, or is another one now, is no store without locks.
        if (before && (!*identity || (*identity)->store_id != before->store_id))
            return std::unexpected(gone(server_.address()));
        if (!*identity) return without_store(connection, deadline);
        remember(**identity);
        answers->erase(answers->begin());
        return Seen{true, {(*identity)->now}, std::move(*answers)};
    }

    Result<Seen> without_store(Connection& connection, Deadline deadline) {
        auto answers = connection.look(Sql("SELECT ") << now_of(clock_), deadline);
        if (!answers) return std::unexpected(error_of(answers.error(), "read the server's clock"));
        const auto row = answers->front().next();
        return Seen{false, {Instant{milliseconds{row ? row->number(0) : 0}}}, {}};
    }

    std::optional<Identity> known() const {
        const std::scoped_lock lock(mutex_);
        return identity_;
    }

    /// Of a store that has our format.
    std::optional<StoreId> current_id() const {
        const std::scoped_lock lock(mutex_);
        return identity_ && !identity_->is_old() ? std::optional(identity_->store_id) : std::nullopt;
    }

    void remember(const Identity& identity) {
        const std::scoped_lock lock(mutex_);
        // What was read before somebody else wrote the first lock may arrive after it.
        const bool was_used = identity_ && identity_->store_id == identity.store_id && identity_->was_used;
        identity_ = identity;
        identity_->was_used |= was_used && !identity.is_old();
    }

    bool was_used() const {
        const std::scoped_lock lock(mutex_);
        return identity_ && identity_->was_used;
    }

    void remember_use() {
        const std::scoped_lock lock(mutex_);
        if (identity_ && !identity_->is_old()) identity_->was_used = true;
    }

    static std::string format_in_words(const Identity& identity) {
        return fmt::format("{}{}", identity.format,
                           identity.is_old() ? fmt::format("; the first change makes it {}", our_format) : "");
    }

    const Clock& clock_;
    Server server_;
    std::optional<SessionLocks> sessions_{};  ///< With `?session=on`.
    Waiting waiting_{};
    Optimistic optimistic_{};  ///< Used without sessions.
    Gathering gathering_;      ///< Used without sessions.
    base::Grading grading_{};  ///< As it was when the store was opened.

    mutable std::mutex mutex_;
    std::optional<Identity> identity_{};  ///< Guarded by mutex_. Of the store that was seen first, as it was last.
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
