#include "stores/etcd/session.hpp"

#include <fmt/format.h>

#include <charconv>

namespace holdfast::stores::etcd {
namespace {

constexpr int format = 1;
constexpr std::string_view mark = "holdfast ";

/// `holdfast 1 <store_id>`
Result<StoreId> id_in(std::string_view meta) {
    const Error not_ours{Errc::format_unsupported, "the keys below this prefix were not written by Holdfast"};
    if (!meta.starts_with(mark)) return std::unexpected(not_ours);
    meta.remove_prefix(mark.size());
    int version = 0;
    const auto [end, error] = std::from_chars(meta.begin(), meta.end(), version);
    if (error != std::errc{}) return std::unexpected(not_ours);
    if (version > format)
        return fail(Errc::format_unsupported,
                    fmt::format("the store has format {}, and this Holdfast knows {}; upgrade it", version, format));
    const auto id = StoreId::parse(
        meta.substr(std::min<std::size_t>(static_cast<std::size_t>(end - meta.begin()) + 1, meta.size())));
    if (!id) return std::unexpected(not_ours);
    return *id;
}

}  // namespace

Result<Session::Answer> Session::read(const Txn& txn, CallBudget& budget) {
    auto answer = write(txn.message(), budget);
    if (!answer && answer.error().code == Errc::outcome_unknown) answer.error().code = Errc::store_unavailable;
    return answer;
}

Result<Session::Answer> Session::write(const std::string& txn, CallBudget& budget) {
    // Before it is asked: an answer from before the store was made does not say that it is gone, although another
    // thread has made it meanwhile.
    const bool was_there = store_id().has_value();
    const auto answer = cluster_.call(method::txn, txn, budget);
    if (!answer) return std::unexpected(answer.error());
    auto read = read_txn(answer->message);
    if (!read) return fail(Errc::outcome_unknown, read.error().message);
    read->store_was_there = was_there;
    return Answer{std::move(*read), answer->maybe_repeated};
}

Result<Moment> Session::moment(CallBudget& budget) {
    if (const auto reckoned = node_clock_.reckoned()) return *reckoned;
    return look_at_clock(budget);
}

Result<Moment> Session::look_at_clock(CallBudget& budget) {
    if (const auto judged = clock_.judges()) return Moment{*judged};
    const Boottime asked_at = host_clock().boottime();
    const auto date = cluster_.date(budget);
    if (!date) return std::unexpected(date.error());
    return node_clock_.heard(*date, asked_at);
}

Result<LockView> Session::judged(BatchView& view, const Wanted& lock, Moment& moment, CallBudget& budget) {
    auto found = view.view_of(lock, moment, node_clock_.tolerance(moment));
    if (!view.may_have_ended(moment)) return found;
    const auto looked = look_at_clock(budget);
    if (!looked) return std::unexpected(looked.error());
    moment = *looked;
    return view.view_of(lock, moment, node_clock_.tolerance(moment));
}

Result<Moment> Session::look(BatchView& view, CallBudget& budget, Order order) {
    Txn txn;
    view.plan([&](const Get& get) { txn.get(get); });
    // Behind what is planned, and only until it is known.
    const bool asks = !was_used();
    if (asks) txn.get({.keys = {keys_.used()}});
    if (order == Order::by_log) txn.order_by_log(keys_.unused());
    auto answer = read(txn, budget);
    if (!answer) return std::unexpected(answer.error());
    const std::size_t mark_place = view.planned();
    if (asks && answer->txn.found.size() > mark_place && !answer->txn.found[mark_place].keys.empty()) now_used();
    if (auto taken = view.take(std::move(answer->txn)); !taken) return std::unexpected(taken.error());
    if (auto rest = complete(view, budget); !rest) return std::unexpected(rest.error());
    // After it was read: whoever looked before might take for live what has ended meanwhile.
    return moment(budget);
}

Result<void> Session::complete(BatchView& view, CallBudget& budget) {
    const std::vector<Get> gets = view.missing();
    if (gets.empty() || !view.meta()) return {};
    Txn txn;
    for (const Get& get : gets) txn.get(get);
    auto answer = read(txn, budget);
    if (!answer) return std::unexpected(answer.error());
    view.take_missing(std::move(answer->txn.found));
    return {};
}

Result<bool> Session::exists(const std::optional<KeyValue>& meta, bool was_there) {
    const std::scoped_lock lock(mutex_);
    if (!meta) {
        if (was_there)
            return fail(Errc::store_unavailable,
                        fmt::format("the store {} is gone: its keys were removed from etcd", cluster_.address().shown));
        return false;
    }
    const auto id = id_in(meta->value);
    if (!id) return std::unexpected(id.error());
    // What was known of the other one says nothing of this.
    if (store_id_ && *store_id_ != *id) was_used_ = false;
    store_id_ = *id;
    meta_ = meta;
    return true;
}

Result<void> Session::create(CallBudget& budget) {
    Txn txn;
    txn.if_unchanged(keys_.meta(), 0);
    txn.if_absent(keys_.records(""));
    txn.put(keys_.meta(), fmt::format("{}{} {}", mark, format, StoreId::random().text()));
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

std::optional<StoreId> Session::store_id() const {
    const std::scoped_lock lock(mutex_);
    return store_id_;
}

std::optional<KeyValue> Session::meta() const {
    const std::scoped_lock lock(mutex_);
    return meta_;
}

}  // namespace holdfast::stores::etcd
