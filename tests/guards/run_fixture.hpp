#pragma once

#include "cli/sandbox.hpp"
#include "holdfast/open.hpp"
#include "holdfast/store.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

namespace holdfast::tests {

using cli_test::Args;
using cli_test::eventually;
using cli_test::Running;

/// `holdfast run` of the awkward child in a sandbox, on a file store that can be looked at from outside.
class RunFixture : public testing::Test {
protected:
    RunFixture();

    /// The command line of `run` with a short lease and the child that behaves like `how`.
    [[nodiscard]] Args command(const Args& how, const Args& more_flags = {}) const;
    [[nodiscard]] Running start(const Args& how, const Args& more_flags = {}) {
        return box_.start(command(how, more_flags));
    }
    /// The same as the first process of a pid namespace, as in a container.
    [[nodiscard]] Args as_init(const Args& how) const;
    [[nodiscard]] static bool can_be_init();
    /// Starts it and waits until `processes` of the child are there.
    [[nodiscard]] Running start_and_await(const Args& how, std::size_t processes);

    /// The inner process of a run. Throws if there is none.
    [[nodiscard]] static pid_t inner_of(const Running& running);

    [[nodiscard]] std::set<pid_t> roster() const;
    void await_roster(std::size_t processes) const;
    [[nodiscard]] bool anybody_alive() const;
    /// When a process of the child was last seen running, by its own word.
    [[nodiscard]] Instant last_sign_of_life() const;

    [[nodiscard]] LockStatus look();
    [[nodiscard]] Deadline soon() const { return Deadline::in(host_clock(), std::chrono::seconds{10}); }
    /// Makes the store unreachable, without changing it.
    void take_store_away();

    /// Waits until the whole family of the child is dead, and judges whether that was before its lease ran out.
    void expect_that_nobody_outlived_the_lease();

    cli_test::Sandbox box_;
    const std::filesystem::path roster_folder_;
    std::filesystem::path store_folder_;
    const LockName name_;
};

/// `R`, `S`, `T` when it is stopped, `Z`… as the kernel shows it; `X` when there is none.
[[nodiscard]] char state_of(pid_t pid);
[[nodiscard]] bool is_alive(pid_t pid);

/// How many processes the child consists of when it behaves like `how`, unreaped ones not counted.
[[nodiscard]] std::size_t family_size(const std::string& how);

}  // namespace holdfast::tests
