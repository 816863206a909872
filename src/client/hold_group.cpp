#include "client/hold_core.hpp"
#include "client/store_identity.hpp"
#include "holdfast/hold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

namespace holdfast {

using std::chrono::milliseconds;

const Hold* HoldGroup::find(const LockName& name) const {
    const auto found = std::ranges::find(holds_, name, [](const Hold& hold) { return hold.name(); });
    return found == holds_.end() ? nullptr : &*found;
}

Boottime HoldGroup::deadline() const {
    Boottime earliest = Boottime::max();
    for (const Hold& hold : holds_) earliest = std::min(earliest, hold.deadline());
    return earliest;
}

std::optional<Error> HoldGroup::loss() const {
    for (const Hold& hold : holds_)
        if (auto loss = hold.loss()) return loss;
    return std::nullopt;
}

Error HoldGroup::reason_of_expiry() const {
    return std::ranges::min_element(holds_, {}, &Hold::deadline)->reason_of_expiry();
}

bool HoldGroup::is_stuck() const { return std::ranges::any_of(holds_, &Hold::is_stuck); }

Result<void> HoldGroup::start_renewing() {
    Result<void> first;
    for (Hold& hold : holds_)
        if (auto started = hold.start_renewing(); !started && first) first = started;
    return first;
}

Result<void> HoldGroup::release() {
    Result<void> first;
    for (Hold& hold : holds_ | std::views::reverse)
        if (auto released = hold.release(); !released && first) first = released;
    return first;
}

void HoldGroup::abandon() {
    for (Hold& hold : holds_) hold.abandon();
}

namespace {

/// The place of each store in the order. Only several stores are asked for their ids.
class StoreOrder {
public:
    [[nodiscard]] static Result<StoreOrder> of(const std::vector<HoldTarget>& targets, const std::vector<Hold>& held) {
        std::vector<Store*> stores;
        for (const HoldTarget& target : targets) stores.push_back(target.store);
        for (const Hold& hold : held) stores.push_back(&hold.store());
        std::ranges::sort(stores);
        stores.erase(std::ranges::unique(stores).begin(), stores.end());
        StoreOrder order;
        if (stores.size() == 1) return order;
        const auto ids = client::identify(stores, *targets.front().options.clock);
        if (!ids) return std::unexpected(ids.error());
        for (std::size_t i = 0; i < stores.size(); ++i) order.ids_.emplace(stores[i], (*ids)[i]);
        return order;
    }

    using Key = std::pair<StoreId, LockName>;
    [[nodiscard]] Key key(const Store& store, const LockName& name) const {
        const auto id = ids_.find(&store);
        return {id == ids_.end() ? StoreId{} : id->second, name};
    }

private:
    std::map<const Store*, StoreId> ids_;
};

/// `conflict`, with the reason why the lock was not waited for although a wait was requested.
Error without_waiting(Error conflict, const LockName& later) {
    conflict.message += fmt::format(
        "; it is not waited for, because {} is held already and comes later in the order "
        "of locks: two commands could wait for each other",
        later.text());
    return conflict;
}

}  // namespace

Result<HoldGroup> hold_all(std::vector<HoldTarget> targets, std::vector<Hold> held) {
    HoldGroup group;
    group.holds_ = std::move(held);
    if (targets.empty() && group.holds_.empty()) return fail(Errc::usage, "no lock is asked for");
    const auto complete = [&group] {
        for (const Hold& each : group.holds_)
            group.losses_.push_back(
                std::make_unique<std::stop_callback<HoldGroup::PassOn>>(each.lost(), HoldGroup::PassOn{group.lost_}));
        return std::move(group);
    };
    if (targets.empty()) return complete();
    for (HoldTarget& target : targets) target.options = client::with_clock_of(*target.store, std::move(target.options));
    const auto order = StoreOrder::of(targets, group.holds_);
    if (!order) return std::unexpected(order.error());
    const auto key = [&](const HoldTarget& target) { return order->key(*target.store, target.name); };
    const auto key_of_hold = [&](const Hold& hold) { return order->key(hold.store(), hold.name()); };
    std::ranges::sort(targets, {}, key);
    const bool twice = std::ranges::adjacent_find(targets, {}, key) != targets.end() ||
                       std::ranges::any_of(targets, [&](const HoldTarget& target) {
                           return std::ranges::find(group.holds_, key(target), key_of_hold) != group.holds_.end();
                       });
    if (twice) return fail(Errc::usage, "the same lock is asked for twice");
    std::optional<StoreOrder::Key> last_held;
    for (const Hold& hold : group.holds_) last_held = std::max(last_held, std::optional(key_of_hold(hold)));

    const Boottime start = targets.front().options.clock->boottime();
    // A lease that cannot be released now runs out by itself; the caller needs the refusal.
    const auto refused = [&group](const Error& error) {
        auto undone = group.release();
        return std::unexpected(error);
    };
    for (HoldTarget& target : targets) {
        if (auto started = group.start_renewing(); !started) return refused(started.error());
        HoldOptions& options = target.options;
        const bool waits = options.wait > milliseconds{0};
        const bool before_held = last_held && key(target) < *last_held && waits;
        // A wait that has run out still takes what is free, as a wait of zero does.
        if (before_held)
            options.wait = milliseconds{0};
        else if (options.wait != HoldOptions::forever)
            options.wait = std::max(options.wait - (options.clock->boottime() - start), milliseconds{0});
        auto taken = hold(*target.store, target.name, options);
        if (!taken && before_held && taken.error().code == Errc::lock_conflict)
            return refused(without_waiting(taken.error(), last_held->second));
        // The wait for those before it may have used up its own.
        if (!taken && waits && taken.error().code == Errc::lock_conflict) taken.error().code = Errc::timed_out;
        if (!taken) return refused(taken.error());
        group.holds_.push_back(std::move(*taken));
    }
    // While it waited for the last, the first may have gone.
    if (auto loss = group.loss()) return refused(*loss);
    return complete();
}

}  // namespace holdfast
