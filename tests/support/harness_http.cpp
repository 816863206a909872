#include "support/daemon.hpp"
#include "support/store_harness.hpp"

#include <memory>
#include <utility>

namespace holdfast::tests {
namespace {

/// A daemon in front of the store of another harness, with the same clock.
class HttpHarness final : public StoreHarness {
public:
    explicit HttpHarness(std::unique_ptr<StoreHarness> inner)
        : StoreHarness(clock_of(*inner)), inner_(std::move(inner)) {
        start_daemon();
    }

    [[nodiscard]] std::string url() const override { return daemon_->url(); }
    void corrupt(const LockName& name) override { inner_->corrupt(name); }
    void corrupt_queue(const LockName& name) override { inner_->corrupt_queue(name); }
    /// The daemon's host, which is this one, boots as well.
    [[nodiscard]] Result<void> reboot() override {
        daemon_.reset();
        if (auto rebooted = inner_->reboot(); !rebooted) return rebooted;
        start_daemon();
        return reopen();
    }

private:
    void start_daemon() { daemon_ = std::make_unique<DaemonInside>(inner_->store(), inner_->clock()); }

    const std::unique_ptr<StoreHarness> inner_;
    std::unique_ptr<DaemonInside> daemon_{};
};

Result<std::unique_ptr<StoreHarness>> in_front_of(Result<std::unique_ptr<StoreHarness>> inner) {
    if (!inner) return inner;
    auto harness = std::make_unique<HttpHarness>(std::move(*inner));
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace

Result<std::unique_ptr<StoreHarness>> start_http_sqlite() { return in_front_of(start_sqlite()); }
Result<std::unique_ptr<StoreHarness>> start_http_postgres() { return in_front_of(start_postgres()); }
Result<std::unique_ptr<StoreHarness>> start_http_redis() { return in_front_of(start_redis()); }

}  // namespace holdfast::tests
