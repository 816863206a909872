#pragma once

#include "kernel/step.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <vector>

namespace holdfast::tests {

/// The least that a store can be: maps, a clock that is moved by hand, and `kernel::step`.
class LittleStore {
public:
    struct Shelf {
        kernel::Record record;
        std::vector<kernel::Ticket> tickets{};  ///< By number.
        std::vector<AuditEvent> events{};
    };

    /// Loads, decides and saves, and hands out the decision as it was made.
    kernel::Decision decide(const Request& request);
    Reply apply(const Request& request) { return decide(request).reply; }

    /// What is kept of one lock; a lock that was never used has a blank record.
    Shelf& shelf(const LockName& name);
    [[nodiscard]] LockStatus status(const LockName& name);
    [[nodiscard]] std::uint64_t waiters(const LockName& name);

    [[nodiscard]] Instant now() const { return now_; }
    void elapse(std::chrono::milliseconds time) { now_ += time; }

private:
    [[nodiscard]] kernel::State load(const Request& request);
    void save(const LockName& name, const kernel::Decision& decision);

    Instant now_{std::chrono::milliseconds{1'700'000'000'000}};
    std::map<LockName, Shelf> shelves_{};
};

/// One lock on a little store, for the tests of single rules.
class KernelTest : public testing::Test {
protected:
    Reply apply(const Request& request) { return store_.apply(request); }
    void elapse(std::chrono::milliseconds time) { store_.elapse(time); }
    [[nodiscard]] Instant now() const { return store_.now(); }

    [[nodiscard]] const kernel::Record& record() { return store_.shelf(name_).record; }
    [[nodiscard]] const AuditEvent& last_event() { return store_.shelf(name_).events.back(); }
    [[nodiscard]] LockStatus status() { return store_.status(name_); }

    /// The grant of a request that must succeed.
    Outcome granted(const Request& request) { return must(apply(request)); }
    FencingToken token_of(const Request& request) { return granted(request).lock.lease.value().token; }

    /// Refused with `code`, and nothing in the record or the audit log has moved.
    void expect_untouched(const Request& request, Errc code);

    const LockName name_ = lock("migrate/prod");
    LittleStore store_;
};

}  // namespace holdfast::tests
