#include "stores/mysql/mysql_store.hpp"

#include "kernel/step.hpp"
#include "stores/batch/gathering.hpp"
#include "stores/mysql/examine.hpp"
#include "stores/mysql/guess.hpp"
#include "stores/mysql/pool.hpp"
#include "stores/mysql/reading.hpp"
#include "stores/mysql/schema.hpp"
#include "stores/mysql/session_locks.hpp"
#include "stores/mysql/transaction.hpp"
#include "stores/mysql/waiting.hpp"

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace holdfast::stores {
namespace {

using namespace mysql;
using std::chrono::milliseconds;
using Remedy = Trouble::Remedy;

/// For opening a store, which has no deadline of its own.
constexpr milliseconds patience{10'000};

Error gone(const Address& address) {
    return {Errc::store_unavailable, "the store in " + address.shown + " is gone; nothing was changed"};
}

/// Which troubles are worth another attempt, and the pause before it.
class Persistence {
public:
    [[nodiscard]] bool goes_on(Remedy remedy, bool used_before) {
        switch (remedy) {
            case Remedy::go_on: return ++made_ready_ <= 10;
            case Remedy::reconnect: return used_before && !std::exchange(reconnected_, true);
            case Remedy::repeat:
                if (++conflicts_ > 5) return false;
                pause();
                return true;
            case Remedy::one_by_one:
            case Remedy::wait:
            case Remedy::look_closely:
            case Remedy::look:
            case Remedy::none: return false;
        }
        return false;
    }
    [[nodiscard]] bool wants_fresh_connection() const { return reconnected_; }

private:
    void pause() const {
        thread_local std::minstd_rand random(std::random_device{}());
        const milliseconds most{2LL << conflicts_};
        std::this_thread::sleep_for(
            milliseconds{std::uniform_int_distribution<milliseconds::rep>(0, most.count())(random)});
    }

    int made_ready_ = 0;
    int conflicts_ = 0;
    bool reconnected_ = false;
};

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
          pool_(std::move(address), clock),
          gathering_(
              clock,
              [this](auto requests, Deadline deadline) { return apply_with({}, requests, deadline, Busy::report); },
              [this](auto requests, Deadline deadline) { return apply_alone({}, requests, deadline); }) {
        if (with_sessions) sessions_.emplace(pool_);
    }

    /// Connects, and checks a store that is there.
    Result<void> check() {
        const Deadline deadline = Deadline::in(clock_, patience);
        if (auto seen = look({}, deadline); !seen) return std::unexpected(seen.error());
        standing_ = standing_of(pool_.facts());
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
        return {pool_.address().shown, store_id_, standing_.grade, standing_.reasons};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const auto seen = look({}, deadline);
        std::vector<Finding> findings{
            {"reachable", seen.has_value(), seen ? pool_.address().shown : seen.error().message}};
        if (!seen) return findings;
        std::ranges::move(examine_server(pool_.facts(), pool_.address()), std::back_inserter(findings));
        findings.push_back(examine_clock(seen->judging.now, clock_));
        findings.push_back({"format", true, seen->exists ? "1" : "not created yet; the first use will"});
        return findings;
    }

private:
    Result<std::vector<Reply>> apply_alone(const SessionView& sessions, std::span<const Request> requests,
                                           Deadline deadline) {
        auto replies = apply_with(sessions, requests, deadline, Busy::wait);
        if (!replies) return std::unexpected(std::move(replies.error().error));
        return std::move(*replies);
    }

    std::expected<std::vector<Reply>, Setback> apply_with(const SessionView& sessions,
                                                          std::span<const Request> requests, Deadline deadline,
                                                          Busy busy) {
        std::shared_ptr<const Doubt> doubt;
        Error unknown{Errc::outcome_unknown, ""};
        // Once it may have been done, nothing that happens later says that it was not.
        const auto failed = [&](Error error) { return std::unexpected(Setback{doubt ? unknown : std::move(error)}); };
        const auto store_id = existing(deadline);
        if (!store_id) return failed(store_id.error());
        Persistence persistence;
        while (true) {
            const bool wants_fresh = doubt || persistence.wants_fresh_connection();
            auto connection = wants_fresh ? pool_.take_fresh(deadline) : pool_.take(deadline);
            if (!connection) return failed(connection.error());
            auto replies = apply_once(**connection, sessions, *store_id, requests, deadline, busy, doubt.get());
            if (replies && doubt && !std::ranges::all_of(*replies, &Reply::has_value)) return failed(unknown);
            if (replies) return std::move(*replies);
            const Trouble& trouble = replies.error();
            if (trouble.remedy == Remedy::look && !doubt && !deadline.passed(clock_)) {
                doubt = trouble.doubt;
                unknown = trouble.error;
                continue;
            }
            if (doubt && trouble.remedy == Remedy::one_by_one) return failed(unknown);
            if (trouble.remedy == Remedy::wait && !doubt)
                return std::unexpected(Setback{trouble.error, true, trouble.busy});
            if (trouble.remedy == Remedy::one_by_one && requests.size() == 1)
                return std::vector<Reply>{std::unexpected(trouble.error)};
            if (trouble.remedy == Remedy::one_by_one) return apply_each(sessions, requests, deadline, busy);
            if (deadline.passed(clock_) || !persistence.goes_on(trouble.remedy, connection->used_before()))
                return failed(trouble.error);
        }
    }

    std::expected<std::vector<Reply>, Trouble> apply_once(Connection& connection, const SessionView& sessions,
                                                          const StoreId& store_id, std::span<const Request> requests,
                                                          Deadline deadline, Busy busy, const Doubt* doubt) {
        const ServerFacts facts = pool_.facts();
        // On a connection that has ended already a guess would only leave a doubt.
        if (!sessions_ && doubt == nullptr && !deadline.passed(clock_) && connection.is_quiet()) {
            if (auto guess = Guess::make(knowledge_, requests, store_id, facts, clock_)) {
                auto replies = guess->run(connection, deadline);
                if (replies && *replies) waiting_.wake(guess->changes());
                if (replies) return std::move(*replies);
            }
        }
        Batch batch(requests, sessions_ ? Claims::dropped : Claims::kept);
        // Who is in doubt waits for the rows, which his own transaction may still have.
        Transaction transaction(connection, batch, facts, sessions, clock_, deadline,
                                doubt == nullptr ? busy : Busy::wait, doubt);
        auto replies = transaction.run(store_id);
        if (!replies) return replies;
        waiting_.wake(batch.changes());
        if (sessions_) return replies;
        const Sight& sight = transaction.sight();
        knowledge_.clock.saw(sight.time, sight.sent, sight.received);
        learn(knowledge_.locks, requests, *replies, batch.changes(), transaction.decided_at());
        return replies;
    }

    /// The store, which is created if it was never there.
    Result<StoreId> existing(Deadline deadline) {
        if (const auto known = known_id()) return *known;
        if (auto seen = look({}, deadline); !seen) return std::unexpected(seen.error());
        if (const auto known = known_id()) return *known;
        auto connection = pool_.take(deadline);
        if (!connection) return std::unexpected(connection.error());
        const auto created = create(**connection, clock_, deadline);
        if (!created) return std::unexpected(created.error());
        remember(created->store_id);
        return created->store_id;
    }

    /// Each request in a batch of its own, so that the one that cannot be applied spoils no other.
    std::expected<std::vector<Reply>, Setback> apply_each(const SessionView& sessions,
                                                          std::span<const Request> requests, Deadline deadline,
                                                          Busy busy) {
        // What several share is not taken apart here: whoever was answered must not hear that it is unknown.
        if (busy == Busy::report)
            return std::unexpected(Setback{{Errc::store_unavailable, "a lock of the batch is damaged"}, true});
        std::vector<Reply> replies;
        for (const Request& request : requests) {
            auto one = apply_with(sessions, {&request, 1}, deadline, busy);
            if (!one && !replies.empty())
                return std::unexpected(Setback{{Errc::outcome_unknown, one.error().error.message}});
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
        const auto known = known_id();
        auto connection = pool_.take(deadline);
        if (!connection) return std::unexpected(connection.error());
        auto answers = (*connection)->look(packet, deadline);
        if (!answers && answers.error().lost() && connection->used_before() && !deadline.passed(clock_)) {
            auto fresh = pool_.take_fresh(deadline);
            if (!fresh) return std::unexpected(fresh.error());
            answers = (*fresh)->look(packet, deadline);
            return seen_in(answers, known, **fresh, deadline);
        }
        return seen_in(answers, known, **connection, deadline);
    }

    Result<Seen> seen_in(std::expected<Answers, Failure>& answers, const std::optional<StoreId>& known,
                         Connection& connection, Deadline deadline) {
        if (!answers && !answers.error().no_such_table())
            return std::unexpected(error_of(answers.error(), "read the locks"));
        auto identity = answers ? identity_in(answers->front()) : std::optional<Identity>();
        if (!identity) return std::unexpected(identity.error());
        // One that was there and is gone, or is another one now, is no store without locks.
        if (known && (!*identity || (*identity)->store_id != *known)) return std::unexpected(gone(pool_.address()));
        if (!*identity) return without_store(connection, deadline);
        remember((*identity)->store_id);
        answers->erase(answers->begin());
        return Seen{true, {(*identity)->now}, std::move(*answers)};
    }

    Result<Seen> without_store(Connection& connection, Deadline deadline) {
        auto answers = connection.look(Sql("SELECT ") << now_of(clock_), deadline);
        if (!answers) return std::unexpected(error_of(answers.error(), "read the server's clock"));
        const auto row = answers->front().next();
        return Seen{false, {Instant{milliseconds{row ? row->number(0) : 0}}}, {}};
    }

    std::optional<StoreId> known_id() const {
        const std::scoped_lock lock(mutex_);
        return store_id_;
    }

    void remember(const StoreId& store_id) {
        const std::scoped_lock lock(mutex_);
        store_id_ = store_id;
    }

    const Clock& clock_;
    Pool pool_;
    std::optional<SessionLocks> sessions_{};  ///< With `?session=on`.
    Waiting waiting_{};
    Knowledge knowledge_{};  ///< Used without sessions.
    Gathering gathering_;    ///< Used without sessions.
    Standing standing_{};    ///< As it was when the store was opened.

    mutable std::mutex mutex_;
    std::optional<StoreId> store_id_{};  ///< Guarded by mutex_. Of the store that was seen first.
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
