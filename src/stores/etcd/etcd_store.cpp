#include "stores/etcd/etcd_store.hpp"

#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
#include "stores/etcd/foreseen.hpp"
#include "stores/etcd/grade.hpp"
#include "stores/etcd/optimistic.hpp"
#include "stores/etcd/read.hpp"
#include "stores/etcd/wire/watch_stream.hpp"
#include "stores/etcd/writing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <ranges>

namespace holdfast::stores {
namespace {

using namespace etcd;
using std::chrono::milliseconds;

/// A waiter looks again after this long when there is no watch to be had.
constexpr milliseconds look_again_unwatched{500};
/// How often it looks when the next second of the node's clock may be the one that it waits for.
constexpr milliseconds look_again_soonest{200};
/// One of those who meet at a lock is always done, so few meet again.
constexpr int attempts_without_pause = 3;

void sleep(const std::stop_token& stop, milliseconds time) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    nobody.wait_for(lock, stop, time, [] { return false; });
}

/// While etcd removes a thousand events, everybody else waits: what a Prune counts for, so that few are in one
/// transaction. It has a record, an event, a removal and the queue that is read.
constexpr std::size_t operations_of_prune = 16;

/// The longest of the lists of a transaction for it.
std::size_t operations_for(const Request& request) {
    if (std::holds_alternative<Prune>(request)) return operations_of_prune;
    // Reading: record, queue, own ticket, others. Then, of those without a record, once more and their past, and the
    // own ticket wherever it is.
    const std::size_t others = kernel::others_of(request).size();
    const std::size_t reading = std::max(3 + others, 2 * (1 + others) + 1);
    // Writing: record, event, ticket and its index, and its old place.
    const auto* acquire = std::get_if<Acquire>(&request);
    const bool stays_out = (acquire != nullptr && !acquire->ticket) || !kernel::ticket_of(request);
    return std::max<std::size_t>(reading, stays_out ? 4 : 5);
}

/// How many of `requests` fit into one transaction, at least one.
std::size_t fitting(std::span<const Request> requests) {
    // One for what the store is, one for the proof that a change was made, one for the mark that the store was used.
    constexpr std::size_t room = Txn::most_operations - 3;
    std::size_t needed = 0;
    std::size_t count = 0;
    for (const Request& request : requests) {
        needed += operations_for(request);
        if (count > 0 && needed > room) break;
        ++count;
    }
    return count;
}

class EtcdStore final : public Store {
public:
    EtcdStore(Address address, const Clock& clock)
        : clock_(clock),
          session_(std::move(address), clock),
          gathering_(clock, [this](auto requests, Deadline deadline) { return apply_all(requests, deadline); }) {}

    /// Finds out what the cluster promises, and whether the store is one of ours.
    Result<void> connect() {
        CallBudget budget(clock_, Deadline::never());
        auto grading = grading_of(session_.cluster(), budget);
        if (!grading) return std::unexpected(grading.error());
        grading_ = std::move(*grading);
        const std::vector<Wanted> nothing;
        BatchView view(session_.keys(), nothing);
        if (auto looked = session_.look(view, budget); !looked) return std::unexpected(looked.error());
        if (auto exists = session_.exists(view); !exists) return std::unexpected(exists.error());
        return {};
    }

    /// The cluster orders all changes one after the other, so those of several threads would only stand in line there.
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return gathering_.apply(requests, deadline);
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        CallBudget budget(clock_, deadline);
        return etcd::inspect(session_, name, budget);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        CallBudget budget(clock_, deadline);
        return etcd::list(session_, query, budget);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        CallBudget budget(clock_, deadline);
        return etcd::history(session_, query, budget);
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            // A new one for each look: to listen in between is no silence of etcd.
            CallBudget budget(clock_, deadline);
            auto foreseen = watch.ticket ? foreseen_.take(*watch.ticket) : std::nullopt;
            const auto outlook = foreseen ? Result<Outlook>(std::move(*foreseen)) : look_out(session_, watch, budget);
            // A look that is cut off by the end of the wait is no failure of the store.
            if (!outlook && deadline.passed(clock_)) return std::nullopt;
            if (!outlook) return std::unexpected(outlook.error());
            if (outlook->may_go_on || (!watch.ticket && outlook->seq != watch.seen_seq))
                return look_at_own(watch, deadline);
            const News news = listen(watch, *outlook, deadline);
            if (!news.is_its_turn) continue;
            if (auto handed_on = handed_on_by(watch, *outlook, news)) return handed_on;
            return look_at_own(watch, deadline);
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        return {session_.cluster().address().shown, session_.store_id(), grading_.grade, grading_.reasons,
                session_.was_used()};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        auto findings = examine_cluster(session_, clock_, deadline);
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    Result<std::vector<Reply>> apply_all(std::span<const Request> requests, Deadline deadline) {
        CallBudget budget(clock_, deadline);
        std::vector<Reply> replies;
        bool changed = false;
        do {
            const std::size_t count = fitting(requests);
            auto some = apply_some(requests.subspan(0, count), budget, changed);
            if (!some) {
                if (changed) some.error().code = Errc::outcome_unknown;
                return std::unexpected(some.error());
            }
            std::ranges::move(*some, std::back_inserter(replies));
            requests = requests.subspan(count);
        } while (!requests.empty());
        return replies;
    }

    /// A batch in one transaction: read, decide, and write if nothing that was read has changed meanwhile.
    Result<std::vector<Reply>> apply_some(std::span<const Request> requests, CallBudget& budget, bool& changed) {
        Batch batch(requests);
        BatchView view(session_.keys(), batch.wanted());
        Result<Moment> moment = Moment{};
        if (const auto predicted = predict(view, requests)) {
            moment = *predicted;
        } else {
            moment = look(view, requests, budget);
        }
        for (int attempt = 0; moment; ++attempt) {
            view.tell(batch, *moment, session_.node_clock().tolerance(*moment));
            if (view.may_have_ended(*moment)) {
                moment = session_.look_at_clock(budget);
                if (!moment) break;
                view.tell(batch, *moment, session_.node_clock().tolerance(*moment));
            }
            std::vector<Reply> replies = batch.run(moment->now, session_.node_clock().margin());
            // What is remembered is good enough to try, and not to refuse.
            if (view.is_assumed() && (!all_granted(replies) || batch.changes().empty())) {
                moment = look(view, requests, budget);
                continue;
            }
            if (batch.changes().empty()) return replies;
            std::vector<Change> changes = batch.changes();
            begin_late(replies, changes, *moment);
            const Writing writing(session_.keys(), view, changes, *moment, session_.was_used());
            auto answer = session_.write(writing.message(), budget);
            if (!answer) return std::unexpected(answer.error());
            using Earlier = Writing::Earlier;
            const Earlier earlier = !answer->txn.succeeded && answer->maybe_repeated
                                        ? writing.earlier_copy(view, answer->txn)
                                        : Earlier::not_done;
            if (answer->txn.succeeded && view.is_assumed()) count_waiters(view, requests, replies, *answer, *moment);
            if (answer->txn.succeeded && writing.marks_used()) session_.now_used();
            remember(view, changes, writing, answer->txn);
            if (answer->txn.succeeded && writing.reads_queue())
                foresee(view, changes.front(), writing, *answer, *moment);
            if (answer->txn.succeeded || earlier == Earlier::done) {
                changed = true;
                return replies;
            }
            if (earlier == Earlier::unknown)
                return fail(Errc::outcome_unknown,
                            "etcd did not answer at once, and the audit event that would show whether it did what it "
                            "was asked was pruned meanwhile");
            // Somebody was faster. The answer says how things are now, but not how they will be after a pause.
            if (budget.over())
                return fail(Errc::store_unavailable, "others kept changing the lock until the time was over");
            const bool pauses = attempt >= attempts_without_pause;
            if (pauses) pause_after(attempt - attempts_without_pause, budget);
            moment = writing.reads_otherwise() && !pauses ? again(view, std::move(*answer), budget)
                                                          : look(view, requests, budget);
        }
        return std::unexpected(moment.error());
    }

    /// Whether the lock was handed on to who waits; and who comes next, so that giving it back takes one trip.
    Result<std::optional<HandedOn>> look_at_own(const Watch& watch, Deadline deadline) {
        if (!watch.ticket) return std::nullopt;
        CallBudget budget(clock_, deadline);
        const std::vector<Wanted> wanted{{.name = watch.name, .depth = 1}};
        BatchView view(session_.keys(), wanted);
        const Boottime before = clock_.boottime();
        auto moment = session_.look(view, budget);
        if (!moment) return std::unexpected(moment.error());
        const auto exists = session_.exists(view);
        if (!exists) return std::unexpected(exists.error());
        if (!*exists) return std::nullopt;
        const auto lock = session_.judged(view, wanted.front(), *moment, budget);
        if (!lock) return std::unexpected(lock.error());
        auto handed_on = HandedOn::to(*watch.ticket, status_at(*lock, *moment), before);
        if (!handed_on || lock->moved || !lock->moved_tickets.empty()) return handed_on;
        const auto first = std::ranges::min_element(lock->tickets, {}, [&](const kernel::Ticket& ticket) {
            return std::pair(ticket.expires_at <= moment->now, ticket.number);
        });
        expect_release(watch, *view.record(watch.name),
                       first == lock->tickets.end() ? std::nullopt : view.ticket(watch.name, first->number));
        return handed_on;
    }

    static bool all_granted(const std::vector<Reply>& replies) {
        return std::ranges::all_of(replies, [](const Reply& reply) { return reply.has_value(); });
    }

    /// What time it is, if everything can be predicted.
    std::optional<Moment> predict(BatchView& view, std::span<const Request> requests) {
        const auto meta = session_.meta();
        const auto moment = session_.node_clock().reckoned();
        if (!meta || !moment || !optimistic_.predict(view, requests, *meta)) return std::nullopt;
        return moment;
    }

    /// Who does not look before a change hears with its answer how many wait.
    void count_waiters(BatchView& view, std::span<const Request> requests, std::vector<Reply>& replies,
                       const Session::Answer& answer, const Moment& moment) {
        view.take_queues(answer.txn, moment, session_.node_clock().tolerance(moment));
        for (std::size_t i = 0; i < requests.size(); ++i)
            if (replies[i]) replies[i]->lock.waiters = view.waiting(name_of(requests[i]));
    }

    void remember(const BatchView& view, const std::vector<Change>& changes, const Writing& writing,
                  const TxnAnswer& answer) {
        for (const Change& change : changes) {
            const auto record = writing.records().find(change.name);
            if (!answer.succeeded || record == writing.records().end()) {
                optimistic_.forget(change.name);
                continue;
            }
            const bool is_quiet = view.waiting(change.name) == 0 && change.put.empty();
            optimistic_.remember(change.name, {session_.keys().record(change.name), record->second, answer.revision},
                                 is_quiet);
        }
    }

    /// Who has taken a place knows by that what it waits for.
    void foresee(const BatchView& view, const Change& change, const Writing& writing, const Session::Answer& answer,
                 const Moment& moment) {
        // A clock that is moved by hand may show any time when the wait begins.
        if (clock_.judges() || change.put.size() != 1 || answer.txn.found.empty()) return;
        std::optional<KeyValue> record = view.record(change.name);
        if (const auto written = writing.records().find(change.name); written != writing.records().end())
            record = {session_.keys().record(change.name), written->second, answer.txn.revision};
        const LockId& waiter = change.put.front().lock_id;
        auto outlook =
            outlook_from(session_, change.name, waiter,
                         {view.meta(), std::move(record), answer.txn.found.back(), answer.txn.revision, moment});
        if (outlook) foreseen_.remember(waiter, std::move(*outlook));
    }

    /// Everything that the batch needs, of a store that is there.
    Result<Moment> look(BatchView& view, std::span<const Request> requests, CallBudget& budget) {
        // A Check is granted without a change, so no comparison would notice that what was read is old.
        const bool checks =
            std::ranges::any_of(requests, [](const Request& r) { return std::holds_alternative<Check>(r); });
        while (true) {
            auto moment = session_.look(view, budget, checks ? Session::Order::by_log : Session::Order::by_one_node);
            if (!moment) return moment;
            const auto exists = session_.exists(view);
            if (!exists) return std::unexpected(exists.error());
            if (*exists) optimistic_.learn(view);
            if (*exists) return moment;
            if (auto created = session_.create(budget); !created) return std::unexpected(created.error());
        }
    }

    Result<Moment> again(BatchView& view, Session::Answer answer, CallBudget& budget) {
        if (auto taken = view.take(std::move(answer.txn)); !taken) return std::unexpected(taken.error());
        const auto exists = session_.exists(view);
        if (!exists) return std::unexpected(exists.error());
        if (auto rest = session_.complete(view, budget); !rest) return std::unexpected(rest.error());
        optimistic_.learn(view);
        return session_.moment(budget);
    }

    /// What a watch tells. Nothing: who waits should look.
    struct News {
        bool is_its_turn = false;
        KeyValue record{};  ///< Then the lock, as it was written.
    };

    /// The lock as it was told, if it was handed on to who waits: what a watch tells is committed. Only where the clock
    /// needs no look either.
    std::optional<HandedOn> handed_on_by(const Watch& watch, const Outlook& outlook, const News& news) {
        const Boottime before = clock_.boottime();
        const auto moment = watch.ticket ? session_.node_clock().reckoned() : std::nullopt;
        if (!moment) return std::nullopt;
        const auto record = unsealed_record(bytes_of(news.record.value), watch.name, moment->now,
                                            session_.node_clock().tolerance(*moment));
        if (!record || record->moved) return std::nullopt;
        const LockView view{.record = record->value, .waiters = std::max<std::uint64_t>(outlook.waiters, 1) - 1};
        auto handed_on = HandedOn::to(*watch.ticket, status_at(view, *moment), before);
        if (handed_on) expect_release(watch, news.record, outlook.behind);
        return handed_on;
    }

    /// Who has the lock, and knows who comes next, gives it back in one trip.
    void expect_release(const Watch& watch, const KeyValue& record, const std::optional<KeyValue>& next) {
        if (next)
            optimistic_.expect_release(*watch.ticket, {record, *next});
        else
            optimistic_.remember(watch.name, record, true);
    }

    /// Sleeps until there is news of what `outlook` names.
    News listen(const Watch& watch, const Outlook& outlook, Deadline deadline) {
        const std::string key = outlook.watch_next + (outlook.only_deletes ? "-" : "");
        const std::size_t endpoint = session_.cluster().preferred();
        auto stream = watches_.take(key, endpoint);
        if (!stream)
            stream = std::make_unique<WatchStream>(session_.cluster(), endpoint,
                                                   watch_message(outlook.watch_next, outlook.only_deletes));
        News news;
        const Heard heard = hear(*stream, watch, outlook, deadline, news.record);
        if (heard == Heard::end) {
            sleep(watch.stop, std::min(deadline.remaining(clock_), look_again_unwatched));
            return {};
        }
        watches_.give_back(key, endpoint, std::move(stream));
        // Who has moved up looks whether it is the first now, and most are not.
        news.is_its_turn = heard == Heard::news && !outlook.only_deletes;
        return news;
    }

    enum class Heard {
        nothing,  ///< While there was time; or something may have been missed.
        news,
        end,  ///< Of the watch.
    };

    Heard hear(WatchStream& stream, const Watch& watch, const Outlook& outlook, Deadline deadline, KeyValue& heard) {
        const std::stop_callback stop(watch.stop, [&] { stream.wake(); });
        // Real time, as that of the node.
        const Deadline look_again =
            Deadline::in(host_clock(), std::clamp(outlook.look_again, look_again_soonest, look_again_after));
        while (!deadline.passed(clock_) && !watch.stop.stop_requested() && !look_again.passed(host_clock())) {
            const auto news = stream.next(
                std::min({deadline.remaining(clock_), look_again.remaining(host_clock()), look_again_unwatched}));
            if (!news) continue;
            if (news->over) return Heard::end;
            // What happened after the look and before the watch is heard of by looking once more.
            if (news->created && news->revision > outlook.revision) return Heard::nothing;
            const auto newest_first = std::views::reverse(news->events);
            const auto event =
                std::ranges::find_if(newest_first, [&](const KeyValue& one) { return matters(watch, outlook, one); });
            if (event == newest_first.end()) continue;
            heard = *event;
            return Heard::news;
        }
        return Heard::nothing;
    }

    /// A holder that renews its lease is no news for who waits in line.
    static bool matters(const Watch& watch, const Outlook& outlook, const KeyValue& event) {
        // A watch that was kept may tell what has been seen since.
        if (event.changed_in <= outlook.revision) return false;
        if (!watch.ticket || outlook.only_deletes) return true;
        return is_its_turn(*watch.ticket, event.value, watch.name);
    }

    const Clock& clock_;
    Session session_;
    Optimistic optimistic_{};
    Foreseen foreseen_{};
    base::Grading grading_{};
    WatchPool watches_{};
    Gathering gathering_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_etcd_store(base::Url url, const Clock& clock) {
    auto address = Address::of(std::move(url));
    if (!address) return std::unexpected(address.error());
    auto store = std::make_unique<EtcdStore>(std::move(*address), clock);
    if (auto connected = store->connect(); !connected) return std::unexpected(connected.error());
    return store;
}

std::string_view etcd_schema() { return ""; }

}  // namespace holdfast::stores
