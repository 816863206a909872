#include "stores/etcd/remote.hpp"

#include "base/real_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view mark = "holdfast ";

std::string meta_of(const StoreId& store_id) { return fmt::format("{}{} {}", mark, our_format, store_id.text()); }

struct Meta {
    int format = 0;
    StoreId store_id{};
};

/// `holdfast 2 <store_id>`
Result<Meta> read_meta(std::string_view meta) {
    const Error not_ours{Errc::format_unsupported, "the keys below this prefix were not written by Holdfast"};
    if (!meta.starts_with(mark)) return std::unexpected(not_ours);
    meta.remove_prefix(mark.size());
    int version = 0;
    const auto [end, error] = std::from_chars(meta.begin(), meta.end(), version);
    if (error != std::errc{}) return std::unexpected(not_ours);
    if (version > our_format)
        return fail(
            Errc::format_unsupported,
            fmt::format("the store has format {}, and this Holdfast knows {}; upgrade it", version, our_format));
    const auto id = StoreId::parse(
        meta.substr(std::min<std::size_t>(static_cast<std::size_t>(end - meta.begin()) + 1, meta.size())));
    if (!id) return std::unexpected(not_ours);
    return Meta{version, *id};
}

}  // namespace

Result<Remote::Answer> Remote::read(const Txn& txn, base::CallBudget& budget, Order order) {
    const bool may_be_stale = order == Order::may_be_stale;
    // An election takes a second or two. After a call has seen that there is no majority, the next calls do not wait
    // for one.
    const milliseconds patience = may_be_stale_ ? milliseconds{200} : milliseconds{3000};
    base::CallBudget share(base::real_clock(), Deadline::in(base::real_clock(), std::min(patience, budget.left() / 2)));
    auto answer = write(txn.message(), may_be_stale ? share : budget);
    if (!answer && answer.error().code == Errc::outcome_unknown) answer.error().code = Errc::store_unavailable;
    if (!may_be_stale) return answer;
    const bool is_away = !answer && answer.error().code == Errc::store_unavailable;
    if (is_away) {
        auto known = write(txn.message_to_one_node(), budget);
        if (!known) return answer;
        answer = std::move(known);
    }
    may_be_stale_ = is_away;
    return answer;
}

Result<Remote::Answer> Remote::write(const std::string& txn, base::CallBudget& budget) {
    // Read before the request is sent: if another thread creates the store meanwhile, the answer `no store` does not
    // mean that it is gone.
    const bool was_there = store_id().has_value();
    const auto answer = cluster_.call(method::txn, txn, budget);
    if (!answer) return std::unexpected(answer.error());
    auto read = read_txn(answer->message);
    if (!read) return fail(Errc::outcome_unknown, read.error().message);
    read->store_was_there = was_there;
    return Answer{std::move(*read), answer->maybe_repeated};
}

Result<Moment> Remote::moment(base::CallBudget& budget) {
    if (const auto reckoned = node_clock_.reckoned()) return *reckoned;
    return look_at_clock(budget);
}

Result<Moment> Remote::look_at_clock(base::CallBudget& budget) {
    if (const auto judged = clock_.judges()) return Moment{*judged};
    const Boottime asked_at = base::real_clock().boottime();
    const auto date = cluster_.date(budget);
    if (!date) return std::unexpected(date.error());
    return node_clock_.heard(*date, asked_at);
}

Result<LockView> Remote::judged(BatchView& view, const Wanted& lock, Moment& moment, base::CallBudget& budget) {
    auto found = view.view_of(lock, moment, node_clock_.tolerance(moment));
    if (!view.may_have_ended(moment)) return found;
    const auto looked = look_at_clock(budget);
    if (!looked) return std::unexpected(looked.error());
    moment = *looked;
    return view.view_of(lock, moment, node_clock_.tolerance(moment));
}

Result<Moment> Remote::look(BatchView& view, base::CallBudget& budget, Order order) {
    Txn txn;
    view.plan([&](const Get& get) { txn.get(get); });
    // After the planned reads, and only until the mark is known.
    const bool asks = !was_used();
    if (asks) txn.get({.keys = {keys_.used()}});
    if (order == Order::by_log) txn.order_by_log(keys_.unused());
    auto answer = read(txn, budget, order);
    if (!answer) return std::unexpected(answer.error());
    const std::size_t mark_place = view.planned();
    if (asks && answer->txn.found.size() > mark_place && !answer->txn.found[mark_place].keys.empty()) now_used();
    if (auto taken = view.take(std::move(answer->txn)); !taken) return std::unexpected(taken.error());
    if (auto rest = complete(view, budget, order); !rest) return std::unexpected(rest.error());
    // The time after the read: by an earlier time an expired lease might seem to be live.
    return moment(budget);
}

Result<void> Remote::complete(BatchView& view, base::CallBudget& budget, Order order) {
    const std::vector<Get> gets = view.missing();
    if (gets.empty() || !view.meta()) return {};
    Txn txn;
    for (const Get& get : gets) txn.get(get);
    auto answer = read(txn, budget, order);
    if (!answer) return std::unexpected(answer.error());
    view.take_missing(std::move(answer->txn.found));
    return {};
}

Result<bool> Remote::exists(const std::optional<KeyValue>& meta, bool was_there) {
    const std::scoped_lock lock(mutex_);
    if (!meta) {
        if (was_there)
            return std::unexpected(Error{.code = Errc::store_unavailable,
                                         .message = fmt::format("the store {} is gone: its keys were removed from etcd",
                                                                cluster_.address().shown),
                                         .store_is_lost = true});
        return false;
    }
    const auto seen = read_meta(meta->value);
    if (!seen) return std::unexpected(seen.error());
    // The mark of the other store says nothing about this one.
    if (store_id_ && *store_id_ != seen->store_id) was_used_ = false;
    store_id_ = seen->store_id;
    format_ = seen->format;
    meta_ = meta;
    return true;
}

Result<void> Remote::create(base::CallBudget& budget) {
    Txn txn;
    txn.if_unchanged(keys_.meta(), 0);
    txn.if_absent(keys_.records(""));
    txn.put(keys_.meta(), meta_of(StoreId::random()));
    txn.otherwise_get({.keys = {keys_.meta()}});
    const auto answer = write(txn.message(), budget);
    if (!answer) return std::unexpected(answer.error());
    const bool is_there =
        answer->txn.succeeded || (!answer->txn.found.empty() && !answer->txn.found.front().keys.empty());
    if (!is_there)
        return fail(Errc::record_corrupt, fmt::format("{} has locks, and the key {} is missing that says what it is",
                                                      cluster_.address().shown, keys_.meta()));
    return {};
}

Result<void> Remote::upgrade(base::CallBudget& budget) {
    const auto old = meta();
    const auto seen = read_meta(old->value);
    if (!seen) return std::unexpected(seen.error());
    Txn txn;
    // Every change by any version compares this key, so changes under way fail, try again and see the new format.
    txn.if_unchanged(keys_.meta(), old->changed_in);
    txn.put(keys_.meta(), meta_of(seen->store_id));
    auto answer = write(txn.message(), budget);
    // The next look shows whether another client was faster or the answer was lost. No lock was touched.
    if (!answer && answer.error().code == Errc::outcome_unknown) answer.error().code = Errc::store_unavailable;
    if (!answer) return std::unexpected(answer.error());
    return {};
}

int Remote::format() const {
    const std::scoped_lock lock(mutex_);
    return format_;
}

std::optional<StoreId> Remote::store_id() const {
    const std::scoped_lock lock(mutex_);
    return store_id_;
}

std::optional<KeyValue> Remote::meta() const {
    const std::scoped_lock lock(mutex_);
    return meta_;
}

}  // namespace holdfast::stores::etcd
