#pragma once

#include "base/fd.hpp"
#include "holdfast/error.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::guards::worktree {

/// Runs one command that brings the writers of a tree to rest, and another that lets them go on.
///
/// The second runs whatever becomes of this process: a keeper of its own session runs both, and thaws as soon as this
/// process dies, or has not been heard of for the grace, as one that was stopped.
class Freeze {
public:
    struct Options {
        std::string freeze{};  ///< For /bin/sh.
        std::string thaw{};
        std::chrono::milliseconds grace{5000};
    };
    /// `consistency_unavailable` if the command did not end with 0; then nothing is thawed.
    [[nodiscard]] static Result<Freeze> begin(const Options& options);
    Freeze(Freeze&&) noexcept;
    Freeze& operator=(Freeze&&) noexcept;
    /// Thaws, if `thaw` was not called.
    ~Freeze();

    /// Thaws now. `consistency_unavailable` if the keeper had to do it before, or the command failed.
    [[nodiscard]] Result<void> thaw();

private:
    class Keeper;
    explicit Freeze(std::unique_ptr<Keeper> keeper);
    std::unique_ptr<Keeper> keeper_;
};

}  // namespace holdfast::guards::worktree
