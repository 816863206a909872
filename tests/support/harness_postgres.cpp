#include "support/postgres_by_hand.hpp"
#include "support/store_harness.hpp"

namespace holdfast::tests {
namespace {

/// A schema of its own.
class PostgresHarness final : public StoreHarness {
public:
    ~PostgresHarness() override { ByHand{port_}("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE"); }

    [[nodiscard]] std::string url() const override { return postgres_url(port_, "schema=" + schema_); }

    /// Flips a bit in the middle of the record.
    void corrupt(const LockName& name) override {
        const std::string changed =
            ByHand{port_}("UPDATE " + schema_ +
                          ".locks SET data = set_byte(data, length(data) / 2, get_byte(data, length(data) / 2) # 1) "
                          "WHERE name = " +
                          ByHand::bytes(name.text()) + " RETURNING 1");
        if (changed != "1") throw std::runtime_error("no record of " + name.text());
    }
    void corrupt_queue(const LockName& name) override {
        ByHand{port_}("UPDATE " + schema_ + ".queue SET data = '\\x00' WHERE name = " + ByHand::bytes(name.text()));
    }

private:
    const std::uint16_t port_ = shared_server_port("postgres");
    const std::string schema_ = random_schema();
};

}  // namespace

Result<std::unique_ptr<StoreHarness>> start_postgres() {
    auto harness = std::make_unique<PostgresHarness>();
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace holdfast::tests
