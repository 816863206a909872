#include "stores/etcd/read.hpp"

#include "stores/common/event_cursor.hpp"
#include "stores/common/query.hpp"
#include "stores/common/sealed.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace holdfast::stores::etcd {
namespace {

/// A larger page would keep etcd busy for too long.
constexpr std::uint64_t keys_in_page = 500;
/// No limit.
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

/// Reads a range of keys page by page, each with the meta key, to notice that the store was replaced.
class Pages {
public:
    /// `extra`: a key that is read with every page, too, if it is not empty.
    Pages(Remote& remote, base::CallBudget& budget, std::string extra = {})
        : remote_(remote), budget_(budget), extra_(std::move(extra)) {}

    /// Calls `use` for each key until it has returned true `most` times. Reads nothing if there is no store.
    template <class Use>
    Result<void> read(KeyRange range, std::size_t most, Use use, Revision changed_since = 0) {
        // Begin with the number wanted, and double it, since many keys may be of no use.
        std::uint64_t size = std::min<std::uint64_t>(most, keys_in_page);
        for (std::size_t wanted = 0; wanted < most; size = std::min(2 * size, keys_in_page)) {
            Txn txn;
            txn.get({.keys = {remote_.keys().meta()}});
            txn.get({.keys = range, .limit = size, .changed_since = changed_since});
            if (!extra_.empty()) txn.get({.keys = {extra_}});
            auto answer = remote_.read(txn, budget_, Remote::Order::may_be_stale);
            if (!answer) return std::unexpected(answer.error());
            if (answer->txn.found.size() < (extra_.empty() ? 2U : 3U))
                return fail(Errc::store_unavailable, "etcd did not answer everything");
            auto& meta = answer->txn.found[0].keys;
            const auto exists =
                remote_.exists(meta.empty() ? std::nullopt : std::optional(meta.front()), answer->txn.store_was_there);
            if (!exists) return std::unexpected(exists.error());
            const auto moment = remote_.moment(budget_);
            if (!moment) return std::unexpected(moment.error());
            moment_ = *moment;
            if (!*exists) return {};
            if (!store_) store_ = {*remote_.store_id(), answer->txn.revision};
            if (store_->store_id != *remote_.store_id())
                return fail(Errc::store_unavailable, "the store was replaced while it was read");
            const Found& found = answer->txn.found[1];
            if (!extra_.empty()) take_extra(answer->txn.found[2]);
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

    /// The value of the extra key with the first page, and with the last.
    [[nodiscard]] const std::optional<KeyValue>& extra_in_first() const { return extra_in_first_; }
    [[nodiscard]] const std::optional<KeyValue>& extra_in_last() const { return extra_in_last_; }

    struct StoreSeen {
        StoreId store_id{};
        Revision revision = 0;
    };
    /// The store as the first page found it; absent if it was not there.
    [[nodiscard]] const std::optional<StoreSeen>& store() const { return store_; }
    [[nodiscard]] const Moment& moment() const { return moment_; }
    [[nodiscard]] std::chrono::milliseconds tolerance() const { return remote_.node_clock().tolerance(moment_); }

private:
    void take_extra(const Found& found) {
        extra_in_last_ = found.keys.empty() ? std::nullopt : std::optional(found.keys.front());
        if (!extra_in_first_) extra_in_first_ = extra_in_last_;
    }

    Remote& remote_;
    base::CallBudget& budget_;
    Moment moment_{};
    std::optional<StoreSeen> store_{};
    const std::string extra_;
    std::optional<KeyValue> extra_in_first_{};
    std::optional<KeyValue> extra_in_last_{};
};

enum class Unreadable { error, pass_over };
/// The waiters of the locks in `range`, by name.
Result<std::map<std::string, std::uint64_t>> count_waiters(Pages& pages, const Keys& keys, const KeyRange& range,
                                                           Unreadable unreadable) {
    std::map<std::string, std::uint64_t> waiters;
    const auto read = pages.read(range, all, [&](const KeyValue& one) -> Result<bool> {
        const auto name = keys.name_in_ticket(one.key);
        const auto parsed = name ? LockName::parse(*name) : fail(Errc::record_corrupt, "");
        if (!parsed) return fail(Errc::record_corrupt, "a key of a queue cannot be read");
        const auto ticket = unsealed_ticket(bytes_of(one.value), *parsed, pages.moment().now, pages.tolerance());
        if (!ticket && unreadable == Unreadable::pass_over) return true;
        if (!ticket) return std::unexpected(ticket.error());
        if (ticket->value.expires_at > pages.moment().now) ++waiters[*name];
        return true;
    });
    if (!read) return std::unexpected(read.error());
    return waiters;
}

Result<AuditEvent> event_in(const KeyValue& one, const Keys& keys) {
    auto event = unsealed_event(bytes_of(one.value));
    if (event && keys.event(event->name, event->seq) != one.key)
        return fail(Errc::record_corrupt, "an event of the audit log lies where another belongs");
    return event;
}

bool wants_oldest(const HistoryQuery& query) { return query.which == HistoryQuery::Which::oldest; }

/// The events of a query begin after this seq. For the newest few of a long log, the record has the number of the last
/// one.
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
    // The events of one lock are stored in the order of the query.
    const std::size_t most = query.name && wants_oldest(query) ? query.limit.value_or(all) : all;
    const auto read = pages.read(range, most, [&](const KeyValue& one) -> Result<bool> {
        auto event = event_in(one, keys);
        if (!event) return std::unexpected(event.error());
        if (query.since && event->at < *query.since) return false;
        events.push_back(std::move(*event));
        return true;
    });
    if (!read) return std::unexpected(read.error());
    if (!query.name) sort_by_time(events);
    cut_to_limit(events, query);
    return events;
}

// The forms of cursors: between two passes, and inside a pass.
constexpr std::string_view cursor_form = "etcd";
constexpr std::string_view pass_form = "etcd-pass";

/// A pass over the events of the revisions after `after` up to `through`.
struct EventPass {
    Revision after = 0;
    Revision through = 0;
    std::optional<LockName> name{};  ///< The lock that was read last.
    std::uint64_t seq = 0;           ///< The number of the last event of that lock that was read.

    [[nodiscard]] EventCursor text(const StoreId& store_id) const {
        return cursor_of(pass_form, {store_id.text(), std::to_string(after), std::to_string(through),
                                     std::to_string(seq), word_of(*name)});
    }
};

/// The pass that continues from `cursor` in this store.
Result<EventPass> pass_after(const EventCursor& cursor, const Pages::StoreSeen& store) {
    const auto words = cursor_words(cursor, pass_form, 5);
    if (!words) {
        const auto done = NumberedCursor::read(cursor, cursor_form, store.store_id);
        if (!done) return std::unexpected(done.error());
        // A cluster that was restored counts from an earlier revision again.
        return EventPass{done->number <= store.revision ? done->number : 0, store.revision};
    }
    const auto store_id = StoreId::parse((*words)[0]);
    const auto after = number_of_word((*words)[1]);
    const auto through = number_of_word((*words)[2]);
    const auto seq = number_of_word((*words)[3]);
    auto name = name_of_word((*words)[4]);
    if (!store_id || !after || !through || !seq || !name) return std::unexpected(invalid_cursor());
    if (*store_id != store.store_id || *through > store.revision) return EventPass{0, store.revision};
    return EventPass{*after, *through, std::move(name), static_cast<std::uint64_t>(*seq)};
}

/// Adds the events of one lock that belong to `pass` and come after `pass.seq`, as far as there is room.
Result<void> add_events(Pages& pages, const Keys& keys, const kernel::Record& record, EventPass& pass, std::size_t room,
                        std::vector<AuditEvent>& events) {
    // From the end backwards, until one is found that is older: most of the log is.
    for (std::uint64_t back = 64;; back *= 8) {
        const bool is_all = pass.after == 0 || record.seq <= pass.seq + back;
        const std::uint64_t from = is_all ? pass.seq : record.seq - back;
        bool reaches_back = is_all;
        std::vector<AuditEvent> found;
        const auto read =
            pages.read(keys.events(record.name, from), is_all && pass.after == 0 ? room : all,
                       [&](const KeyValue& one) -> Result<bool> {
                           reaches_back = reaches_back || one.changed_in <= pass.after;
                           if (one.changed_in <= pass.after || one.changed_in > pass.through || found.size() == room)
                               return false;
                           auto event = event_in(one, keys);
                           if (!event) return std::unexpected(event.error());
                           found.push_back(std::move(*event));
                           return true;
                       });
        if (!read) return std::unexpected(read.error());
        if (!reaches_back) continue;
        if (!found.empty()) pass.seq = found.back().seq;
        std::ranges::move(found, std::back_inserter(events));
        return {};
    }
}

}  // namespace

Result<LockStatus> inspect(Remote& remote, const LockName& name, base::CallBudget& budget) {
    // The whole queue, as far as one page goes: people look at the number of waiters.
    const std::vector<Wanted> wanted{{.name = name, .depth = keys_in_page}};
    BatchView view(remote.keys(), wanted);
    auto moment = remote.look(view, budget, Remote::Order::may_be_stale);
    if (!moment) return std::unexpected(moment.error());
    const auto exists = remote.exists(view);
    if (!exists) return std::unexpected(exists.error());
    if (!*exists) return kernel::status_of(kernel::blank(name), 0, moment->now);
    const auto found = remote.judged(view, wanted.front(), *moment, budget);
    if (!found) return std::unexpected(found.error());
    return status_at(*found, *moment);
}

LockStatus status_at(const LockView& lock, const Moment& moment) {
    LockStatus status = kernel::status_of(lock.record, lock.waiters, moment.now);
    // The clock may show this much more, and the remaining time of a lease must not be overstated.
    status.as_of += moment.resolution;
    return status;
}

Result<std::vector<LockStatus>> list(Remote& remote, const ListQuery& query, base::CallBudget& budget) {
    const Keys& keys = remote.keys();
    Pages pages(remote, budget);
    std::vector<kernel::Record> records;
    std::vector<LockName> unreadable;
    const KeyRange range = keys.records(query.prefix, query.after);
    if (range.begin >= range.end) return {};
    const auto read = pages.read(range, query.limit.value_or(all), [&](const KeyValue& one) -> Result<bool> {
        const auto name = LockName::parse(keys.name_in_record(one.key).value_or(""));
        if (!name) return fail(Errc::record_corrupt, "a key of a lock is not a name");
        auto record = unsealed_record(bytes_of(one.value), *name, pages.moment().now, pages.tolerance());
        if (!record && query.with_unreadable) {
            unreadable.push_back(*name);
            return true;
        }
        if (!record) return std::unexpected(record.error());
        if (!is_selected(query, record->value)) return false;
        records.push_back(std::move(record->value));
        return true;
    });
    if (!read) return std::unexpected(read.error());
    std::vector<LockStatus> found;
    found.reserve(records.size() + unreadable.size());
    for (const LockName& name : unreadable) found.push_back(kernel::unreadable_status(name, pages.moment().now));
    if (records.empty()) return found;
    const auto waiters = count_waiters(pages, keys, keys.tickets_between(records.front().name, records.back().name),
                                       query.with_unreadable ? Unreadable::pass_over : Unreadable::error);
    if (!waiters) return std::unexpected(waiters.error());
    for (const kernel::Record& record : records) {
        const auto waiting = waiters->find(record.name.text());
        found.push_back(kernel::status_of(record, waiting == waiters->end() ? 0 : waiting->second, pages.moment().now));
    }
    if (!unreadable.empty()) std::ranges::sort(found, {}, &LockStatus::name);
    return found;
}

Result<std::vector<AuditEvent>> history(Remote& remote, const HistoryQuery& query, base::CallBudget& budget) {
    const Keys& keys = remote.keys();
    while (true) {
        Pages pages(remote, budget, query.name ? keys.record(*query.name) : std::string());
        auto events = read_log(pages, keys, query);
        if (!events || !query.name) return events;
        // If events were pruned between two pages, the result may have a gap: read again.
        const auto pruned_seq = [&](const std::optional<KeyValue>& stored) -> std::uint64_t {
            if (!stored) return 0;
            const auto record = unsealed_record(bytes_of(stored->value), *query.name, pages.moment().now);
            return record ? record->value.pruned_seq : 0;
        };
        if (pruned_seq(pages.extra_in_first()) == pruned_seq(pages.extra_in_last())) return events;
    }
}

Result<EventPage> events(Remote& remote, const EventCursor& after, std::size_t limit, base::CallBudget& budget) {
    const Keys& keys = remote.keys();
    const std::size_t most = std::max<std::size_t>(limit, 1);
    Pages store(remote, budget);
    if (auto read = store.read({keys.meta()}, 1, [](const KeyValue&) -> Result<bool> { return true; }); !read)
        return std::unexpected(read.error());
    if (!store.store()) return page_without_store(after, cursor_form);
    const StoreId store_id = store.store()->store_id;
    auto pass = pass_after(after, *store.store());
    if (!pass) return std::unexpected(pass.error());

    EventPage page{.next = NumberedCursor{pass->through}.text(cursor_form, store_id)};
    if (pass->after == pass->through) return page;
    // Begin with the lock that was not finished.
    KeyRange range = keys.records("");
    if (pass->name) range.begin = keys.record(*pass->name);
    Pages pages(remote, budget);
    const auto add = [&](const KeyValue& one) -> Result<bool> {
        const auto name = LockName::parse(keys.name_in_record(one.key).value_or(""));
        if (!name) return fail(Errc::record_corrupt, "a key of a lock is not a name");
        const auto record = unsealed_record(bytes_of(one.value), *name, pages.moment().now, pages.tolerance());
        if (!record) return std::unexpected(record.error());
        if (pass->name != *name) pass->seq = 0;
        pass->name = *name;
        Pages log(remote, budget);
        if (auto added = add_events(log, keys, record->value, *pass, most - page.events.size(), page.events); !added)
            return std::unexpected(added.error());
        return page.events.size() == most;
    };
    // Ends with the lock that fills the page.
    if (auto read = pages.read(range, 1, add, pass->after + 1); !read) return std::unexpected(read.error());
    if (pages.store() && pages.store()->store_id != store_id)
        return fail(Errc::store_unavailable, "the store was replaced while it was read");
    page.is_last = page.events.size() < most;
    if (!page.is_last) page.next = pass->text(store_id);
    return page;
}

Result<EventCursor> end_of_events(Remote& remote, base::CallBudget& budget) {
    Pages pages(remote, budget);
    const auto use = [](const KeyValue&) -> Result<bool> { return true; };
    if (auto read = pages.read({remote.keys().meta()}, 1, use); !read) return std::unexpected(read.error());
    if (!pages.store()) return EventCursor{};
    return NumberedCursor{pages.store()->revision}.text(cursor_form, pages.store()->store_id);
}

}  // namespace holdfast::stores::etcd
