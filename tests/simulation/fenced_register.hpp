#pragma once

#include "holdfast/lease.hpp"
#include "simulation/bugs.hpp"
#include "simulation/world.hpp"

namespace holdfast::simulation {

/// A resource behind a fence. A write says which version it follows from; one that is accepted although it
/// follows from an older version has lost an update.
class FencedRegister {
public:
    /// A write or seal that arrives, with its token.
    struct Pass {
        LockId lock_id{};
        FencingToken token{};
        [[nodiscard]] bool operator==(const Pass&) const = default;
    };

    FencedRegister(World& world, Bug bug) : world_(world), bug_(bug) {}

    /// False if somebody newer was here, or somebody else with the same token.
    bool seal(const Pass& pass) {
        const bool welcome = pass.token > seen_.token || pass == seen_ || bug_ == Bug::no_fence;
        if (!welcome) {
            ++refusals_;
            return false;
        }
        if (pass != seen_) last_number_ = 0;
        seen_ = pass;
        return true;
    }

    [[nodiscard]] std::uint64_t version() const { return version_; }

    /// `number` counts the writes of one holder, so that a copy of a write is not a second one.
    void write(const Pass& pass, std::uint64_t number, std::uint64_t follows) {
        if (!seal(pass) || number <= last_number_) return;
        world_.note("register: token {} writes version {} after {}", pass.token.value, version_ + 1, follows);
        if (follows != version_) world_.broke("an update was lost");
        last_number_ = number;
        ++version_;
    }

    [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

private:
    World& world_;
    const Bug bug_;
    Pass seen_{};
    std::uint64_t last_number_ = 0;
    std::uint64_t version_ = 0;
    std::uint64_t refusals_ = 0;
};

}  // namespace holdfast::simulation
