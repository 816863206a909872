#include "torture/driver/choices.hpp"

#include "torture/client/workloads.hpp"

#include <algorithm>
#include <array>

namespace torture {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

bool is_of_supervisors(const std::string& fault) { return fault.starts_with("supervisor_"); }

/// What happens to clients is cheap and common; what happens to the store stops everybody.
std::size_t weight_of(const std::string& fault) {
    return fault == "kill" || fault == "stop" || is_of_supervisors(fault) ? 4 : 1;
}

/// In percent of the ttl: the shortest, and by how much more it can be.
struct Length {
    std::uint64_t least;
    std::uint64_t more;
};

Length length_of(const std::string& fault) {
    // A cluster needs seconds to find out that it has lost its leader.
    if (fault.starts_with("node_") || fault.starts_with("leader_")) return {400, 200};
    const bool outlasts_a_lease =
        fault.ends_with("stop") || fault == "delay" || fault.starts_with("partition_") || fault == "disk_full";
    return outlasts_a_lease ? Length{150, 100} : Length{5, 50};
}

}  // namespace

Choices::Choices(const Options& options) : options_(options), random_(options.seed) {
    for (const std::string& fault : options.faults) weighted_.insert(weighted_.end(), weight_of(fault), fault);
    deal();
}

/// Faults come like cards: all of them before any comes again, so that a short run has each.
void Choices::deal() {
    dealt_ = 0;
    for (std::size_t left = weighted_.size(); left > 1; --left) std::swap(weighted_[left - 1], weighted_[below(left)]);
}

Choice Choices::next() {
    // All is drawn every time, so that what one fault needs does not change what the next one gets.
    Choice choice;
    if (dealt_ == weighted_.size()) deal();
    choice.fault = weighted_[dealt_++];
    choice.pause = milliseconds{below(500)};
    choice.place = below(options_.clients);
    const auto has = [&](const std::string& workload) {
        return std::ranges::find(options_.workloads, workload) != options_.workloads.end();
    };
    std::string workload = options_.workloads[below(options_.workloads.size())];
    // A process should be stopped in the middle of work that a fence protects: this is what a stop tests.
    if (choice.fault == "stop" && has("register")) workload = "register";
    if (is_of_supervisors(choice.fault)) workload = "run";
    const std::vector<std::string> locks = locks_of(workload);
    choice.lock = locks[below(locks.size())];
    const Length length = length_of(choice.fault);
    choice.length = options_.ttl * static_cast<std::int64_t>(length.least + below(100) * length.more / 100) / 100;
    // Long enough that somebody else can have come in the meantime.
    if (choice.fault == "stop") choice.length += options_.margin;
    const std::array<milliseconds, 4> steps{2 * options_.ttl, -2s, 1h, -5s};
    choice.step = steps[below(steps.size())];
    choice.delay = milliseconds{50 + below(551)};
    choice.messages = 1 + below(8);
    return choice;
}

}  // namespace torture
