#pragma once

#include "conformance/cases.hpp"
#include "holdfast/audit.hpp"
#include "holdfast/store.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/store_harness.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <vector>

namespace holdfast::tests {

/// A fresh store of each kind for each test. Time passes only when the test lets it.
class StoreConformance : public testing::TestWithParam<StoreCase> {
protected:
    void SetUp() override {
        auto harness = GetParam().start();
        ASSERT_TRUE(harness) << GetParam().name << ": " << harness.error().message;
        harness_ = std::move(*harness);
    }

    [[nodiscard]] StoreHarness& harness() { return *harness_; }
    [[nodiscard]] Store& store() { return harness_->store(); }
    [[nodiscard]] StoreProperties properties() { return store().properties(); }
    void elapse(std::chrono::milliseconds time) { harness_->elapse(time); }
    [[nodiscard]] Deadline soon() { return Deadline::in(harness_->clock(), std::chrono::seconds{10}); }
    [[nodiscard]] Instant now() { return harness_->clock().wall(); }

    [[nodiscard]] Reply apply(const Request& request) { return store().apply_one(request, soon()); }
    /// Throws, and so fails the test, unless the request is granted.
    Outcome granted(const Request& request) { return must(apply(request)); }
    [[nodiscard]] LockStatus inspect(const LockName& name) { return must(store().inspect(name, soon())); }
    [[nodiscard]] std::vector<AuditEvent> history(const LockName& name) {
        return must(store().history({.name = name}, soon()));
    }
    [[nodiscard]] std::vector<EventKind> kinds(const LockName& name) {
        std::vector<EventKind> found;
        for (const AuditEvent& event : history(name)) found.push_back(event.kind);
        return found;
    }
    using Seqs = std::vector<std::uint64_t>;
    [[nodiscard]] static Seqs seqs(const std::vector<AuditEvent>& events) {
        Seqs found;
        for (const AuditEvent& event : events) found.push_back(event.seq);
        return found;
    }
    /// The audit log of the lock is whole and ends where its record says.
    void expect_whole_chain(const LockName& name) {
        EXPECT_THAT(verify_chain(history(name), inspect(name)), Granted()) << name.text();
    }

private:
    std::unique_ptr<StoreHarness> harness_{};
};

}  // namespace holdfast::tests
