// The fence in a SQLite file. BEGIN IMMEDIATE is the locking read: one connection writes at a time, from the check to
// the commit. A process that stops in a transaction keeps the file, and nobody can end it from outside.

#include "guards/sql/fence.hpp"

namespace holdfast::guards::fence {
namespace {

constexpr auto table =
    "CREATE TABLE IF NOT EXISTS holdfast_fence (\n"
    "    resource  TEXT    NOT NULL PRIMARY KEY,\n"
    "    store_id  TEXT    NOT NULL,\n"
    "    token     INTEGER NOT NULL CHECK (token >= 0),\n"
    "    lock_id   TEXT    NOT NULL\n"
    ")";

/// SQLite has no procedures. So a caller inserts a row into this view, and the trigger checks it.
constexpr auto assert_view =
    "CREATE VIEW IF NOT EXISTS holdfast_assert (name, token, lock_id) AS\n"
    "    SELECT resource, token, lock_id FROM holdfast_fence";
constexpr auto assert_trigger =
    "CREATE TRIGGER IF NOT EXISTS holdfast_assert_check INSTEAD OF INSERT ON holdfast_assert\n"
    "BEGIN\n"
    "    SELECT RAISE(ROLLBACK, 'E_FENCING_MISMATCH: the database is not sealed for this token and lock_id')\n"
    "    WHERE NOT EXISTS (SELECT 1 FROM holdfast_fence\n"
    "                      WHERE resource = NEW.name AND token = NEW.token AND lock_id = NEW.lock_id);\n"
    "END";

Texts texts() {
    return {
        .exists = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'holdfast_fence'",
        .create = {"BEGIN IMMEDIATE", table, "COMMIT"},
        .begin_sealing = {"BEGIN IMMEDIATE"},
        .end_sealing = {},
        .add_row = "INSERT OR IGNORE INTO main.holdfast_fence VALUES ($1, $2, 0, $4)",
        .lock_row = "SELECT resource, store_id, token, lock_id FROM main.holdfast_fence WHERE resource = $1",
        .change_row = "UPDATE main.holdfast_fence SET store_id = $2, token = $3, lock_id = $4 WHERE resource = $1",
        .check =
            "SELECT 1 FROM main.holdfast_fence WHERE resource = $1 AND store_id = $2 AND token = $3 AND "
            "lock_id = $4",
        .read_row = "SELECT resource, store_id, token, lock_id FROM main.holdfast_fence WHERE resource = $1",
        .list = "SELECT resource, store_id, token, lock_id FROM main.holdfast_fence ORDER BY resource",
    };
}

class SqliteFence final : public Fence {
public:
    SqliteFence(sql::Session& session, const Clock& clock) : Fence(session, clock, fence::texts()) {}

    [[nodiscard]] Result<void> enter_connection(const FenceClaim& /*claim*/, Deadline /*deadline*/) override {
        return fail(
            Errc::store_unsafe,
            "a statement outside a transaction cannot be fenced in SQLite: there is no server that could end it "
            "for the next holder");
    }
    void leave_connection() override {}

protected:
    [[nodiscard]] std::vector<sql::Command> beginning(const FenceClaim& /*claim*/,
                                                      std::chrono::milliseconds /*lease_left*/) const override {
        return {{.text = "BEGIN IMMEDIATE", .values = {}}};
    }
    [[nodiscard]] std::vector<sql::Command> mark(const FenceClaim& /*claim*/) const override { return {}; }
    [[nodiscard]] std::vector<std::string> assert_statements() const override {
        return {"BEGIN IMMEDIATE", assert_view, assert_trigger, "COMMIT"};
    }
    [[nodiscard]] Result<std::vector<EarlierSession>> end_earlier(const FenceClaim& /*claim*/,
                                                                  Deadline /*deadline*/) override {
        return std::vector<EarlierSession>();
    }
};

}  // namespace

Result<std::unique_ptr<Fence>> sqlite_fence(sql::Session& session, const Clock& clock) {
    return std::make_unique<SqliteFence>(session, clock);
}

std::string sqlite_script() { return std::string(table) + ";\n\n" + assert_view + ";\n\n" + assert_trigger + ";\n"; }

}  // namespace holdfast::guards::fence
