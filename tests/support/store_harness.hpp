#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"
#include "support/temp_folder.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::tests {

/// One store with data of its own, under a clock that the test moves; and ways to break it.
class StoreHarness {
public:
    StoreHarness() = default;
    StoreHarness(const StoreHarness&) = delete;
    StoreHarness& operator=(const StoreHarness&) = delete;
    virtual ~StoreHarness() = default;

    [[nodiscard]] Store& store() { return *store_; }
    /// What `open_store` is given.
    [[nodiscard]] virtual std::string url() const = 0;
    [[nodiscard]] ManualClock& clock() { return *clock_; }

    /// A further, independent Store object on the same data, as another process has it.
    [[nodiscard]] Result<std::unique_ptr<Store>> open_another() const;
    /// Ends the Store object and opens the data again, as after a restart.
    [[nodiscard]] Result<void> reopen();

    /// Lets time pass.
    void elapse(std::chrono::milliseconds time) { clock_->advance(time); }
    /// Moves the wall clock, as an operator or NTP does.
    void step_wall(std::chrono::milliseconds step) { clock_->step_wall(step); }
    /// The host boots again, and with it the Store object.
    [[nodiscard]] virtual Result<void> reboot();

    /// Damages what is stored of the lock, behind the store's back.
    virtual void corrupt(const LockName& name) = 0;
    /// The same of all places in its queue.
    virtual void corrupt_queue(const LockName& name) = 0;

protected:
    /// With the clock of another harness.
    explicit StoreHarness(std::shared_ptr<ManualClock> clock) : clock_(std::move(clock)) {}
    [[nodiscard]] static const std::shared_ptr<ManualClock>& clock_of(const StoreHarness& other) {
        return other.clock_;
    }

    /// Where a store that keeps files puts them. Goes after the Store object.
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

private:
    TempFolder folder_;
    std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
    std::unique_ptr<Store> store_{};
};

/// Each opens an empty store of its kind. Without fsync: these tests never cut the power.
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_memory();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_file();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_sqlite();

/// Each opens an empty store of its own in the server that the test run shares.
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_postgres();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_mysql();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_redis();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_etcd();

/// Each starts a daemon in front of an empty store of that kind.
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_http_sqlite();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_http_postgres();
[[nodiscard]] Result<std::unique_ptr<StoreHarness>> start_http_redis();

}  // namespace holdfast::tests
