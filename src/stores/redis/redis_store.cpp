#include "stores/redis/redis_store.hpp"

#include "base/jitter.hpp"
#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
#include "stores/common/sealed.hpp"
#include "stores/redis/grade.hpp"
#include "stores/redis/history.hpp"
#include "stores/redis/read.hpp"
#include "stores/redis/script_text.hpp"
#include "stores/redis/wait.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace holdfast::stores {
namespace {

using namespace redis;
using std::chrono::milliseconds;

/// How old a decision may be when it is written. What was judged by the clock of the look still holds then, to
/// within what a holder keeps in reserve.
constexpr milliseconds oldest_decision{1000};
/// The longest sleep without looking: a hint may be lost.
constexpr milliseconds longest_sleep{1000};

/// One `apply` on its way.
struct Round {
    explicit Round(std::span<const Request> requests) : batch(requests), sights(batch.wanted().size()) {}

    /// Decides by what the script saw.
    void take_in(const Looked& looked) {
        now = looked.now;
        for (std::size_t i = 0; i < sights.size(); ++i) {
            const LockName& name = batch.wanted()[i].name;
            auto view = view_of(looked.answer.value(), i, name, looked.now, sights[i]);
            if (view && sights.size() == 1) now = not_before(view->record, now);
            batch.found(name, std::move(view));
        }
        replies = batch.run(now);
    }

    Batch batch;
    std::vector<Sight> sights;
    Instant now{};  ///< At which it was decided.
    std::vector<Reply> replies{};
};

class RedisStore final : public Store {
public:
    RedisStore(std::string url, Address address, const Clock& clock)
        : url_(std::move(url)),
          remote_(address, clock),
          hints_(std::move(address)),
          gathering_(clock, [this](auto requests, Deadline deadline) { return apply_all(requests, deadline); }) {}

    /// Connects, and learns what the server promises.
    Result<void> connect(Deadline deadline) {
        auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return std::unexpected(grading.error());
        grading_ = std::move(*grading);
        lacks_rights_ = !grading_.missing_rights.empty();
        if (const auto found = remote_.confirm(deadline); !found) return std::unexpected(found.error());
        return {};
    }

    /// The server runs one script at a time, so those of several threads would only stand in line there.
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        if (auto may = may_change(deadline); !may) return std::unexpected(may.error());
        return gathering_.apply(requests, deadline);
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return read_status(remote_, name, deadline);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return read_list(remote_, query, deadline);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        return read_history(remote_, query, deadline);
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        const Clock& clock = remote_.clock();
        // Listening comes first, then the look: what happens in between is not missed.
        Hints::Ear ear(hints_, watch.ticket ? remote_.keys().turn(*watch.ticket) : remote_.keys().lock(watch.name));
        ear.wait_until_listening(std::min(deadline.remaining(clock), longest_sleep), watch.stop);
        bool is_called = false;
        while (!deadline.passed(clock) && !watch.stop.stop_requested()) {
            auto outlook = look_out(watch, deadline);
            // A look that is cut off by the end of the wait is no failure of the store.
            if (!outlook && deadline.passed(clock)) return std::nullopt;
            if (!outlook) return std::unexpected(outlook.error());
            if (is_called || outlook->time_to_sleep == milliseconds{0}) return std::move(outlook->handed_on);
            const bool is_heard = ear.wait(std::min(outlook->time_to_sleep, deadline.remaining(clock)), watch.stop);
            is_called = is_heard && watch.ticket;
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        return {url_, remote_.store_id(), grading_.grade, grading_.reasons, remote_.was_used()};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const auto found = remote_.confirm(deadline);
        if (!found) return {{"reachable", false, found.error().message}};
        std::vector<Finding> findings{{"reachable", true, url_}};
        auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return {{"reachable", false, grading.error().message}};
        std::ranges::move(grading->findings, std::back_inserter(findings));
        findings.push_back(examine_writing(remote_.server(), remote_.keys(), deadline));
        findings.push_back({"format", true, *found ? "1" : "not created yet; the first use will"});
        findings.push_back(examine_records(*this, remote_.clock(), deadline));
        return findings;
    }

private:
    /// What was missing when the store was opened may have been permitted since.
    Result<void> may_change(Deadline deadline) {
        if (!lacks_rights_) return {};
        const auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return std::unexpected(grading.error());
        if (!grading->missing_rights.empty())
            return std::unexpected(lacking(remote_.server().address(), grading->missing_rights));
        lacks_rights_ = false;
        return {};
    }

    Result<std::vector<Reply>> apply_all(std::span<const Request> requests, Deadline deadline) {
        Round round(requests);
        auto looked = try_optimistically(round, deadline);
        if (!looked) return std::unexpected(looked.error());
        for (int attempt = 0; looked->outline.kind != Outline::Kind::done; ++attempt) {
            round.take_in(*looked);
            if (round.batch.changes().empty()) break;
            const Instant time = looked->outline.time;
            looked = commit(round, {time - slewing, time + oldest_decision}, deadline);
            if (!looked) return std::unexpected(looked.error());
            if (looked->outline.kind == Outline::Kind::done) break;
            // Somebody else was faster. The answer shows how things are now, so it is worth trying at once; after
            // that, who waits for different times does not meet again, and what was seen before is old.
            if (deadline.passed(remote_.clock()))
                return fail(Errc::store_unavailable, "others changed the lock again and again; nothing was changed");
            if (attempt <= 1) continue;
            const milliseconds longest_pause{std::min(1 << std::min(attempt, 6), 50)};
            std::this_thread::sleep_for(base::random_between(milliseconds{0}, longest_pause));
            looked = remote_.look(round.batch.wanted(), IfMissing::create, deadline);
            if (!looked) return std::unexpected(looked.error());
        }
        return std::move(round.replies);
    }

    /// In one round trip, if everything can be predicted. The answer to a wrong prediction is a look.
    Result<Looked> try_optimistically(Round& round, Deadline deadline) {
        const auto arrival = remote_.server_clock().on_arrival();
        const auto look = [&] { return remote_.look(round.batch.wanted(), IfMissing::create, deadline); };
        if (!arrival || !remote_.store_id()) return look();
        round.now = remote_.clock().judges().value_or(*arrival);
        std::vector<KnownLock> predictions;
        for (std::size_t i = 0; i < round.sights.size(); ++i) {
            const LockName& name = round.batch.wanted()[i].name;
            const KnownLock& lock = predictions.emplace_back(predict(locks_, name));
            const bool has_queue = lock.view.last_number > 0;
            if (has_queue && !round.batch.wanted()[i].is_asked_for_once()) return look();
            round.sights[i] = {
                .value = lock.value, .was_held = lock.view.record.held.has_value(), .has_queue = has_queue};
            round.batch.found(name, lock.view);
        }
        round.replies = round.batch.run(round.now);
        if (!may_send(predictions, round.replies, round.batch.changes(), round.now)) return look();
        return commit(round, ServerClock::window_for(*arrival), deadline);
    }

    /// Writes what the round decided, if nothing has changed.
    Result<Looked> commit(Round& round, const Window& window, Deadline deadline) {
        const auto& wanted = round.batch.wanted();
        const auto& changes = round.batch.changes();
        auto values = values_after(wanted, round.sights, changes, round.now);
        auto looked = remote_.commit(wanted, {round.sights, changes, values, round.now}, window, deadline);
        const bool done = looked && looked->outline.kind == Outline::Kind::done;
        for (std::size_t i = 0; i < changes.size(); ++i) {
            const Change& change = changes[i];
            const auto at = std::ranges::lower_bound(wanted, change.name, {}, &Wanted::name) - wanted.begin();
            const bool waits = round.sights[static_cast<std::size_t>(at)].has_queue || !change.put.empty();
            if (done && change.record && !waits)
                locks_.remember(change.name, {std::move(values[i]), LockView{.record = *change.record}});
            else
                locks_.forget(change.name);
        }
        return looked;
    }

    struct Outlook {
        /// Until the lock may be different for the watcher by the mere passing of time, or should be looked at again.
        /// Zero if it is different already.
        milliseconds time_to_sleep{0};
        std::optional<HandedOn> handed_on{};
    };

    Result<Outlook> look_out(const Watch& watch, Deadline deadline) {
        Wanted wanted{.name = watch.name, .depth = watch.ticket ? 1U : 0U};
        if (watch.ticket) wanted.own_tickets.push_back(*watch.ticket);
        const Boottime before = remote_.clock().boottime();
        const auto looked = remote_.look({&wanted, 1}, IfMissing::nothing, deadline);
        if (!looked) return std::unexpected(looked.error());
        LockView view{.record = kernel::blank(watch.name)};
        Sight sight;
        if (looked->exists()) {
            auto found = view_of(looked->answer.value(), 0, watch.name, looked->now, sight);
            if (!found) return std::unexpected(found.error());
            view = std::move(*found);
        }
        // Never all at the same moment.
        const milliseconds polling = base::random_between(longest_sleep * 3 / 4, longest_sleep);
        if (!watch.ticket) return Outlook{view.record.seq != watch.seen_seq ? milliseconds{0} : polling};

        auto handed_on = HandedOn::to(*watch.ticket, kernel::status_of(view.record, view.waiters, looked->now), before);
        if (handed_on) {
            // The head of the queue is known now, so that a release takes one round trip.
            if (!view.moved && view.moved_tickets.empty())
                locks_.remember(watch.name, {std::move(sight.value), std::move(view)});
            return Outlook{milliseconds{0}, std::move(handed_on)};
        }
        const bool is_in_line =
            std::ranges::find(view.tickets, *watch.ticket, &kernel::Ticket::lock_id) != view.tickets.end();
        if (!is_in_line) return Outlook{};
        const auto first = std::ranges::min_element(view.tickets, {}, [&](const kernel::Ticket& ticket) {
            return std::pair(ticket.expires_at <= looked->now, ticket.number);
        });
        if (first->lock_id != *watch.ticket) return Outlook{polling};
        const Instant opens = view.record.held ? view.record.held->lease.expires_at : looked->now;
        return Outlook{std::clamp(opens - looked->now, milliseconds{0}, polling)};
    }

    const std::string url_;
    Remote remote_;
    Hints hints_;
    LockCache<KnownLock> locks_{};
    Gathering gathering_;
    ServerGrading grading_{};  ///< Set once, before the store is shared.
    std::atomic<bool> lacks_rights_ = false;
};

}  // namespace

Result<std::unique_ptr<Store>> open_redis_store(base::Url url, const Clock& clock) {
    auto address = Address::of(url);
    if (!address) return std::unexpected(address.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto store = std::make_unique<RedisStore>(url.redacted(), std::move(*address), clock);
    if (auto connected = store->connect(Deadline::never()); !connected) return std::unexpected(connected.error());
    return store;
}

std::string_view redis_schema() { return script_text; }

}  // namespace holdfast::stores
