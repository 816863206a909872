#include "support/redis_by_hand.hpp"
#include "support/servers/kinds.hpp"
#include "support/store_harness.hpp"

namespace holdfast::tests {
namespace {

/// A prefix of its own in the shared server.
class RedisHarness final : public StoreHarness {
public:
    ~RedisHarness() override {
        std::vector<std::string> command = server_.keys(prefix_);
        if (command.empty()) return;
        command.insert(command.begin(), "DEL");
        server_.ask(command);
    }

    [[nodiscard]] std::string url() const override {
        return "redis://:" + std::string(server_password) + "@127.0.0.1:" + std::to_string(server_.port()) +
               "/0?prefix=" + prefix_;
    }
    /// Flips a bit in the middle of the record.
    void corrupt(const LockName& name) override {
        const std::string key = "{" + prefix_ + "}:lock:" + name.text();
        std::string record = server_.ask({"GET", key});
        if (record.empty()) throw std::runtime_error("no record of " + name.text());
        char& middle = record[record.size() / 2];
        middle = static_cast<char>(middle ^ 1);
        // As a slip does it, and not as a store does it: the version, at the beginning, stays.
        server_.ask({"SET", key, record});
    }
    void corrupt_queue(const LockName& name) override {
        const std::string key = "{" + prefix_ + "}:tickets:" + name.text();
        for (const std::string& id : server_.list({"HKEYS", key})) server_.ask({"HSET", key, id, "damaged"});
    }

private:
    RedisByHand server_{shared_server_port("redis")};
    const std::string prefix_ = "test-" + LockId::random().text();
};

}  // namespace

Result<std::unique_ptr<StoreHarness>> start_redis() {
    auto harness = std::make_unique<RedisHarness>();
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace holdfast::tests
