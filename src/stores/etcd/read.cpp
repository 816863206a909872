#include "stores/etcd/read.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

namespace holdfast::stores::etcd {
namespace {

/// More at once would keep etcd busy for too long.
constexpr std::uint64_t page = 500;
/// However many there are.
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

/// Everything in a range, page by page; with the meta key, to see whose it is.
class Pages {
public:
    /// With every page the key `beside` is read, too, if it is not empty.
    Pages(Session& session, CallBudget& budget, std::string beside = {})
        : session_(session), budget_(budget), beside_(std::move(beside)) {}

    /// Calls `use` for each key, until it has said so many times that the key was one of those wanted. Nothing if the
    /// store is not there.
    template <class Use>
    Result<void> read(KeyRange range, std::size_t most, Use use) {
        // No more than are wanted; but if there are few of those, not one by one.
        std::uint64_t size = std::min<std::uint64_t>(most, page);
        for (std::size_t wanted = 0; wanted < most; size = std::min(2 * size, page)) {
            Txn txn;
            txn.get({.keys = {session_.keys().meta()}});
            txn.get({.keys = range, .limit = size});
            if (!beside_.empty()) txn.get({.keys = {beside_}});
            auto answer = session_.read(txn, budget_);
            if (!answer) return std::unexpected(answer.error());
            if (answer->txn.found.size() < (beside_.empty() ? 2U : 3U))
                return fail(Errc::store_unavailable, "etcd did not answer everything");
            auto& meta = answer->txn.found[0].keys;
            const auto exists =
                session_.exists(meta.empty() ? std::nullopt : std::optional(meta.front()), answer->txn.store_was_there);
            if (!exists) return std::unexpected(exists.error());
            const auto moment = session_.moment(budget_);
            if (!moment) return std::unexpected(moment.error());
            moment_ = *moment;
            if (!*exists) return {};
            const Found& found = answer->txn.found[1];
            if (!beside_.empty()) take_beside(answer->txn.found[2]);
            for (const KeyValue& one : found.keys) {
                const Result<bool> used = use(one);
                if (!used) return std::unexpected(used.error());
                wanted += *used ? 1U : 0U;
                if (wanted == most) return {};
            }
            if (found.keys.size() < size) return {};
            range.begin = found.keys.back().key + '\0';
        }
        return {};
    }

    /// What was beside the first page, and beside the last.
    [[nodiscard]] const std::optional<KeyValue>& beside_first() const { return beside_first_; }
    [[nodiscard]] const std::optional<KeyValue>& beside_last() const { return beside_last_; }

    [[nodiscard]] const Moment& moment() const { return moment_; }
    [[nodiscard]] std::chrono::milliseconds tolerance() const { return session_.node_clock().tolerance(moment_); }

private:
    void take_beside(const Found& found) {
        beside_last_ = found.keys.empty() ? std::nullopt : std::optional(found.keys.front());
        if (!beside_first_) beside_first_ = beside_last_;
    }

    Session& session_;
    CallBudget& budget_;
    Moment moment_{};
    const std::string beside_;
    std::optional<KeyValue> beside_first_{};
    std::optional<KeyValue> beside_last_{};
};

/// Those of the locks in `range`, by name.
Result<std::map<std::string, std::uint64_t>> count_waiters(Pages& pages, const Keys& keys, const KeyRange& range) {
    std::map<std::string, std::uint64_t> waiters;
    const auto read = pages.read(range, all, [&](const KeyValue& one) -> Result<bool> {
        const auto name = keys.name_in_ticket(one.key);
        const auto parsed = name ? LockName::parse(*name) : fail(Errc::record_corrupt, "");
        if (!parsed) return fail(Errc::record_corrupt, "a key of a queue cannot be read");
        const auto ticket = unsealed_ticket(bytes_of(one.value), *parsed, pages.moment().now, pages.tolerance());
        if (!ticket) return std::unexpected(ticket.error());
        if (ticket->value.expires_at > pages.moment().now) ++waiters[*name];
        return true;
    });
    if (!read) return std::unexpected(read.error());
    return waiters;
}

bool wants_oldest(const HistoryQuery& query) { return query.which == HistoryQuery::Which::oldest; }

/// The seq behind which the events begin that a query wants. For the newest few of a long log, the record says
/// where they are.
std::uint64_t seq_before(Pages& pages, const Keys& keys, const HistoryQuery& query) {
    std::uint64_t newest = 0;
    if (query.limit && !query.since && !wants_oldest(query)) {
        const auto read = pages.read({keys.record(*query.name)}, 1, [&](const KeyValue& one) -> Result<bool> {
            const auto record = unsealed_record(bytes_of(one.value), *query.name, pages.moment().now);
            if (record) newest = record->value.seq;
            return true;
        });
        if (!read || newest <= *query.limit) newest = 0;
    }
    return std::max(query.after_seq, newest == 0 ? 0 : newest - *query.limit);
}

Result<std::vector<AuditEvent>> read_log(Pages& pages, const Keys& keys, const HistoryQuery& query) {
    std::vector<AuditEvent> events;
    const KeyRange range = query.name ? keys.events(*query.name, seq_before(pages, keys, query)) : keys.all_events();
    // Those of one lock lie in the order in which they are wanted.
    const std::size_t most = query.name && wants_oldest(query) ? query.limit.value_or(all) : all;
    const auto read = pages.read(range, most, [&](const KeyValue& one) -> Result<bool> {
        auto event = unsealed_event(bytes_of(one.value));
        if (!event) return std::unexpected(event.error());
        if (keys.event(event->name, event->seq) != one.key)
            return fail(Errc::record_corrupt, "an event of the audit log lies where another belongs");
        if (query.since && event->at < *query.since) return false;
        events.push_back(std::move(*event));
        return true;
    });
    if (!read) return std::unexpected(read.error());
    if (!query.name) std::ranges::sort(events, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
    if (query.limit && events.size() > *query.limit) {
        const auto surplus = static_cast<std::ptrdiff_t>(events.size() - *query.limit);
        const auto from = wants_oldest(query) ? events.end() - surplus : events.begin();
        events.erase(from, from + surplus);
    }
    return events;
}

/// The key of the ticket before `number`, wherever in the queue that is. Nothing if there is none any more.
Result<std::optional<std::string>> ticket_before(Session& session, const LockName& name, std::uint64_t number,
                                                 CallBudget& budget) {
    const Keys& keys = session.keys();
    // A little way back first: of a long queue etcd should not read everything.
    for (std::uint64_t back = std::uint64_t{1} << 16U;; back <<= 4U) {
        const bool is_all = back == 0 || back >= number;
        Txn txn;
        txn.get({.keys = {keys.ticket(name, is_all ? 0 : number - back), keys.ticket(name, number)},
                 .limit = 1,
                 .without_values = true,
                 .last_first = true});
        const auto answer = session.read(txn, budget);
        if (!answer) return std::unexpected(answer.error());
        if (answer->txn.found.empty()) return fail(Errc::store_unavailable, "etcd did not answer everything");
        const auto& found = answer->txn.found.front().keys;
        if (!found.empty()) return found.front().key;
        if (is_all) return std::nullopt;
    }
}

/// Completes what `waiter` needs to know by what was read of the lock. If others stand before it that were not read,
/// the number of its place.
std::optional<std::uint64_t> look_along(Outlook& outlook, const Session& session, const BatchView& view, LockView found,
                                        const LockId& waiter, const Moment& moment) {
    const LockName& name = found.record.name;
    std::ranges::sort(found.tickets, {}, &kernel::Ticket::number);
    const auto is_live = [&](const kernel::Ticket& ticket) { return ticket.expires_at > moment.now; };
    const auto own = std::ranges::find(found.tickets, waiter, &kernel::Ticket::lock_id);
    const auto head = std::ranges::find_if(found.tickets, is_live);
    if (own == found.tickets.end() || !is_live(*own)) {
        outlook.may_go_on = true;
    } else if (head == own) {
        if (std::next(own) != found.tickets.end()) outlook.behind = view.ticket(name, std::next(own)->number);
        outlook.waiters = found.waiters;
        const auto& held = found.record.held;
        const Instant opens = held ? held->lease.expires_at + session.node_clock().margin() : moment.now;
        outlook.may_go_on = opens <= moment.now;
        outlook.look_again = time_until(opens, moment);
    } else {
        // Only who stands before it: a lock that is freed must not wake everybody who waits.
        outlook.only_deletes = true;
        outlook.watch_next = session.keys().ticket(name, std::prev(own)->number);
        const auto last = std::ranges::max_element(found.tickets.begin(), own, {}, &kernel::Ticket::expires_at);
        outlook.look_again = time_until(last->expires_at, moment);
        const auto live = static_cast<std::uint64_t>(std::ranges::count_if(found.tickets, is_live));
        const bool is_deep = std::next(own) == found.tickets.end() && found.waiters > live;
        if (is_deep) return own->number;
    }
    return std::nullopt;
}

}  // namespace

Result<LockStatus> inspect(Session& session, const LockName& name, CallBudget& budget) {
    // The whole queue, as far as one page goes: people look at the number of those who wait.
    const std::vector<Wanted> wanted{{.name = name, .depth = page}};
    BatchView view(session.keys(), wanted);
    auto moment = session.look(view, budget);
    if (!moment) return std::unexpected(moment.error());
    const auto exists = session.exists(view);
    if (!exists) return std::unexpected(exists.error());
    if (!*exists) return kernel::status_of(kernel::blank(name), 0, moment->now);
    const auto found = session.judged(view, wanted.front(), *moment, budget);
    if (!found) return std::unexpected(found.error());
    return status_at(*found, *moment);
}

LockStatus status_at(const LockView& lock, const Moment& moment) {
    LockStatus status = kernel::status_of(lock.record, lock.waiters, moment.now);
    // The clock may show this much more; who counts what is left of a lease goes by the least.
    status.as_of += moment.resolution;
    return status;
}

Result<std::vector<LockStatus>> list(Session& session, const ListQuery& query, CallBudget& budget) {
    const Keys& keys = session.keys();
    Pages pages(session, budget);
    std::vector<kernel::Record> records;
    const KeyRange range = keys.records(query.prefix, query.after);
    if (range.begin >= range.end) return {};
    const auto read = pages.read(range, query.limit.value_or(all), [&](const KeyValue& one) -> Result<bool> {
        const auto name = LockName::parse(keys.name_in_record(one.key).value_or(""));
        if (!name) return fail(Errc::record_corrupt, "a key of a lock is not a name");
        auto record = unsealed_record(bytes_of(one.value), *name, pages.moment().now, pages.tolerance());
        if (!record) return std::unexpected(record.error());
        if (!query.with_free && !record->value.held) return false;
        if (query.changed_since && record->value.changed_at < *query.changed_since) return false;
        records.push_back(std::move(record->value));
        return true;
    });
    if (!read) return std::unexpected(read.error());
    if (records.empty()) return {};
    const auto waiters = count_waiters(pages, keys, keys.tickets_between(records.front().name, records.back().name));
    if (!waiters) return std::unexpected(waiters.error());

    std::vector<LockStatus> found;
    found.reserve(records.size());
    for (const kernel::Record& record : records) {
        const auto waiting = waiters->find(record.name.text());
        found.push_back(kernel::status_of(record, waiting == waiters->end() ? 0 : waiting->second, pages.moment().now));
    }
    return found;
}

Result<std::vector<AuditEvent>> history(Session& session, const HistoryQuery& query, CallBudget& budget) {
    const Keys& keys = session.keys();
    while (true) {
        Pages pages(session, budget, query.name ? keys.record(*query.name) : std::string());
        auto events = read_log(pages, keys, query);
        if (!events || !query.name) return events;
        // What was pruned between two pages may be in the first, and not in the second: a log that never was.
        const auto pruned_seq = [&](const std::optional<KeyValue>& stored) -> std::uint64_t {
            if (!stored) return 0;
            const auto record = unsealed_record(bytes_of(stored->value), *query.name, pages.moment().now);
            return record ? record->value.pruned_seq : 0;
        };
        if (pruned_seq(pages.beside_first()) == pruned_seq(pages.beside_last())) return events;
    }
}

Result<Outlook> look_out(Session& session, const Watch& watch, CallBudget& budget) {
    std::vector<Wanted> wanted{{.name = watch.name, .depth = watch.ticket ? 1U : 0U}};
    if (watch.ticket) wanted.front().own_tickets.push_back(*watch.ticket);
    BatchView view(session.keys(), wanted);
    auto moment = session.look(view, budget);
    if (!moment) return std::unexpected(moment.error());
    Outlook outlook{.watch_next = session.keys().record(watch.name), .revision = view.revision()};
    const auto exists = session.exists(view);
    if (!exists) return std::unexpected(exists.error());
    if (!*exists) return outlook;
    auto found = session.judged(view, wanted.front(), *moment, budget);
    if (!found) return std::unexpected(found.error());
    outlook.seq = found->record.seq;
    if (!watch.ticket) return outlook;

    const auto deep = look_along(outlook, session, view, *found, *watch.ticket, *moment);
    if (!deep) return outlook;
    // There are others between those that were read and this one.
    auto before = ticket_before(session, watch.name, *deep, budget);
    if (!before) return std::unexpected(before.error());
    outlook.may_go_on = !*before;
    outlook.look_again = look_again_after;
    outlook.watch_next = before->value_or("");
    return outlook;
}

std::optional<Outlook> outlook_from(Session& session, const LockName& name, const LockId& waiter, TakenPlace taken) {
    if (!taken.record || taken.queue.keys.size() < taken.queue.count) return std::nullopt;
    const std::vector<Wanted> wanted{{.name = name, .depth = 1}};
    BatchView view(session.keys(), wanted);
    TxnAnswer answer{.succeeded = true, .revision = taken.revision, .store_was_there = true};
    answer.found.resize(2);
    if (taken.meta) answer.found[0].keys.push_back(std::move(*taken.meta));
    answer.found[1].keys.push_back(std::move(*taken.record));
    answer.found.push_back(std::move(taken.queue));
    if (!view.take(std::move(answer))) return std::nullopt;
    const auto found = view.view_of(wanted.front(), taken.moment, session.node_clock().tolerance(taken.moment));
    if (!found || view.may_have_ended(taken.moment)) return std::nullopt;
    Outlook outlook{.seq = found->record.seq, .watch_next = session.keys().record(name), .revision = view.revision()};
    if (look_along(outlook, session, view, *found, waiter, taken.moment)) return std::nullopt;
    return outlook;
}

bool is_its_turn(const LockId& waiter, const std::string& stored_record, const LockName& name) {
    // Whether a lease has run out is not judged here, so any time will do.
    const auto record = unsealed_record(bytes_of(stored_record), name, Instant::max());
    return !record || !record->value.held || record->value.held->lease.lock_id == waiter;
}

}  // namespace holdfast::stores::etcd
