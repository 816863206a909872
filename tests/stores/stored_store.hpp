#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"
#include "support/temp_folder.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tests {

/// A copy of a store that commit 8720ead wrote, from `fixtures/8720ead`, in a place of its own: the locks `held` (with
/// somebody in line), `released` and `taken/over`, with six events. Under a clock that stands a moment after they were
/// written.
class StoredStore {
public:
    [[nodiscard]] static std::vector<std::string> kinds();

    explicit StoredStore(std::string kind);
    StoredStore(const StoredStore&) = delete;
    StoredStore& operator=(const StoredStore&) = delete;
    ~StoredStore();

    [[nodiscard]] std::unique_ptr<Store> open() const;
    [[nodiscard]] const ManualClock& clock() const { return clock_; }
    [[nodiscard]] Deadline soon() const { return Deadline::in(clock_, std::chrono::seconds{30}); }
    /// Of the lock `held`.
    [[nodiscard]] const Credentials& holder() const { return holder_; }

    [[nodiscard]] std::string url() const;
    /// The number of its format, read by hand. No Store object may be open.
    [[nodiscard]] std::string format() const;

    /// What belongs to the store in its server: a schema, a database or what keys begin with.
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    const std::string kind_;
    const std::string name_;
    const TempFolder folder_{};
    const Credentials holder_;
    ManualClock clock_;
};

}  // namespace holdfast::tests
