#pragma once

#include "holdfast/edit.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace holdfast::tests {

/// A project on a store whose time passes when the test says so.
class EditFixture : public testing::Test {
protected:
    [[nodiscard]] Deadline soon() const { return Deadline::in(clock_, std::chrono::seconds{10}); }
    [[nodiscard]] LockStatus look() { return must(store_->inspect(locks_.edit, soon())); }
    [[nodiscard]] Result<EditGrant> open(const std::string& dashboard, const std::string& user) {
        return guard_.open(locks_, Credentials::random(), {dashboard, "tab of " + user, user}, "", soon());
    }

    ManualClock clock_{};
    std::unique_ptr<Store> store_ = must(open_store("memory:", clock_));
    EditGuard guard_{*store_};
    const ProjectLocks locks_ = must(ProjectLocks::of("1"));
};

}  // namespace holdfast::tests
