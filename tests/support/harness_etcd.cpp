#include "support/etcd_by_hand.hpp"
#include "support/servers/kinds.hpp"
#include "support/store_harness.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace holdfast::tests {
namespace {

/// Keys of its own in the etcd that the whole run shares.
class EtcdHarness final : public StoreHarness {
public:
    ~EtcdHarness() override { EtcdByHand(port_).remove_all(prefix_ + "/"); }
    EtcdHarness() = default;
    EtcdHarness(const EtcdHarness&) = delete;
    EtcdHarness& operator=(const EtcdHarness&) = delete;

    /// Without a margin between the clocks of nodes, the answers are those of every other store.
    [[nodiscard]] std::string url() const override {
        return fmt::format("etcd://127.0.0.1:{}/{}?clock_margin=0s", port_, prefix_);
    }
    /// Flips a bit in the middle of the record.
    void corrupt(const LockName& name) override {
        const EtcdByHand etcd(port_);
        const std::string key = prefix_ + "/l/" + name.text();
        auto record = etcd.get(key);
        if (!record) throw std::runtime_error("no record of " + name.text());
        char& middle = (*record)[record->size() / 2];
        middle = static_cast<char>(middle ^ 1);
        etcd.put(key, *record);
    }
    void corrupt_queue(const LockName& name) override {
        const EtcdByHand etcd(port_);
        for (const std::string& key : etcd.keys(prefix_ + "/q/" + name.text())) etcd.put(key, "damaged");
    }

private:
    const std::uint16_t port_ = shared_server_port("etcd");
    const std::string prefix_ = "test-" + LockId::random().text();
};

}  // namespace

Result<std::unique_ptr<StoreHarness>> start_etcd() {
    auto harness = std::make_unique<EtcdHarness>();
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace holdfast::tests
