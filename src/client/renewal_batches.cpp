#include "client/renewal_batches.hpp"

#include <algorithm>
#include <span>

namespace holdfast::client {
namespace {

/// Appends `renewals`, which are in the order of their time, in batches of at most `most`.
void split_by_time(std::span<ScheduledRenewal* const> renewals, Boottime now, std::size_t most,
                   std::vector<RenewalBatch>& batches) {
    while (!renewals.empty()) {
        const auto longest = (renewals.front()->give_up_at - now) * 2;
        const auto end = std::ranges::find_if(renewals.first(std::min(most, renewals.size())),
                                              [&](const auto* each) { return each->give_up_at - now > longest; });
        batches.emplace_back(renewals.begin(), renewals.begin() + (end - renewals.begin()));
        renewals = renewals.subspan(batches.back().size());
    }
}

}  // namespace

std::vector<RenewalBatch> split_into_batches(RenewalBatch renewals, Boottime now, std::size_t free_calls) {
    std::ranges::stable_sort(renewals, {}, &ScheduledRenewal::give_up_at);
    const auto failed = std::ranges::stable_partition(renewals, [](const auto* each) { return !each->has_failed; });
    const auto others = std::span(renewals).first(renewals.size() - failed.size());
    std::vector<RenewalBatch> batches;
    split_by_time(others, now, largest_batch, batches);
    const std::size_t calls_left = free_calls > batches.size() ? free_calls - batches.size() : 1;
    const std::size_t share = (failed.size() + calls_left - 1) / calls_left;
    split_by_time(failed, now, std::clamp<std::size_t>(share, 1, largest_batch), batches);
    return batches;
}

}  // namespace holdfast::client
