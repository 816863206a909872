#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"
#include "support/store_harness.hpp"

#include <stdexcept>

namespace holdfast::tests {
namespace {

class MysqlHarness final : public StoreHarness {
public:
    [[nodiscard]] std::string url() const override { return database_.url(); }
    /// Changes a column, as a slip in a SQL shell does.
    void corrupt(const LockName& name) override {
        MysqlByHand shell(database_.port(), database_.name());
        shell.run("UPDATE holdfast_locks SET token = token + 1 WHERE name = " + hex_literal(name.text()));
        if (shell.affected() != 1) throw std::runtime_error("no record of " + name.text());
    }
    void corrupt_queue(const LockName& name) override {
        MysqlByHand shell(database_.port(), database_.name());
        shell.run("UPDATE holdfast_queue SET data = x'00' WHERE name = " + hex_literal(name.text()));
    }

private:
    MysqlDatabase database_{shared_server_port("mysql")};
};

}  // namespace

Result<std::unique_ptr<StoreHarness>> start_mysql() {
    auto harness = std::make_unique<MysqlHarness>();
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace holdfast::tests
