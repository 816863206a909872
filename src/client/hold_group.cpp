#include "holdfast/hold.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>

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

Result<HoldGroup> hold_all(std::vector<HoldTarget> targets) {
    if (targets.empty()) return fail(Errc::usage, "no lock is asked for");
    const auto key = [](const HoldTarget& target) { return std::tuple(target.store->info().url, target.name); };
    std::ranges::sort(targets, {}, key);
    if (std::ranges::adjacent_find(targets, {}, key) != targets.end())
        return fail(Errc::usage, "the same lock is asked for twice");

    HoldGroup group;
    const Boottime start = targets.front().options.clock->boottime();
    // What cannot be given back now runs out by itself; the refusal is what the caller needs to know.
    const auto refused = [&group](const Error& error) {
        auto undone = group.release();
        return std::unexpected(error);
    };
    for (HoldTarget& target : targets) {
        if (auto started = group.start_renewing(); !started) return refused(started.error());
        HoldOptions& options = target.options;
        // A wait that has run out still takes what is free, as a wait of zero does.
        if (options.wait != HoldOptions::forever)
            options.wait = std::max(options.wait - (options.clock->boottime() - start), milliseconds{0});
        auto held = hold(*target.store, target.name, options);
        if (!held) return refused(held.error());
        group.holds_.push_back(std::move(*held));
    }
    // While it waited for the last, the first may have gone.
    if (auto loss = group.loss()) return refused(*loss);
    return group;
}

}  // namespace holdfast
