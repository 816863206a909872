// The fence in MySQL, MariaDB and TiDB. The check is a share lock of InnoDB. A connection of a holder is known to the
// next one by two GET_LOCKs: one of the lock's name, by which it is found and ended, and one of the lease, which tells
// ours from that of an earlier holder. TiDB has neither share locks nor a way to find the connection.

#include "guards/sql/fence.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <span>

namespace holdfast::guards::fence {
namespace {

using std::chrono::milliseconds;

constexpr auto no_such_connection = "1094";
constexpr auto not_allowed = "1095";

std::string quoted_name(std::string_view name) { return sql::quoted_name(name, SqlDialect::mysql); }

std::string table(std::string_view name) {
    return fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (\n"
        "    resource  VARBINARY(255) NOT NULL PRIMARY KEY,\n"
        "    store_id  CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,\n"
        "    token     BIGINT NOT NULL CHECK (token >= 0),\n"
        "    lock_id   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL\n"
        ") ENGINE = InnoDB",
        name);
}

constexpr auto drop_assert = "DROP PROCEDURE IF EXISTS holdfast_assert";
/// It runs with the rights of its owner, so that a user of it needs none on the table.
constexpr auto assert_procedure =
    "CREATE PROCEDURE holdfast_assert(IN p_name VARBINARY(255), IN p_token BIGINT, IN p_lock_id CHAR(36))\n"
    "SQL SECURITY DEFINER\n"
    "BEGIN\n"
    "    DECLARE sealed INT DEFAULT 0;\n"
    "    SELECT COUNT(*) INTO sealed FROM holdfast_fence\n"
    "        WHERE resource = p_name AND token = p_token AND lock_id = p_lock_id LOCK IN SHARE MODE;\n"
    "    IF sealed = 0 THEN\n"
    "        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,\n"
    "            MESSAGE_TEXT = 'E_FENCING_MISMATCH: the database is not sealed for this token and lock_id';\n"
    "    END IF;\n"
    "END";

/// `for_share`: MariaDB knows only the older words for it.
Texts texts_of(const std::string& database, std::string_view for_share) {
    const std::string name = quoted_name(database) + ".holdfast_fence";
    const std::string read = "SELECT resource, store_id, token, lock_id FROM " + name;
    return {
        .exists = fmt::format("SHOW TABLES FROM {} LIKE 'holdfast\\_fence'", quoted_name(database)),
        .create = {table(name)},
        .begin_sealing = {"SET SESSION innodb_lock_wait_timeout = 1", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                          "START TRANSACTION"},
        .end_sealing = {"SET SESSION innodb_lock_wait_timeout = DEFAULT"},
        .add_row = fmt::format("INSERT IGNORE INTO {} VALUES ($1, $2, 0, $4)", name),
        .lock_row = read + " WHERE resource = $1 FOR UPDATE",
        .change_row = fmt::format("UPDATE {} SET store_id = $2, token = $3, lock_id = $4 WHERE resource = $1", name),
        .check =
            fmt::format("SELECT 1 FROM {} WHERE resource = $1 AND store_id = $2 AND token = $3 AND lock_id = $4 {}",
                        name, for_share),
        .read_row = read + " WHERE resource = $1",
        .list = read + " ORDER BY resource",
    };
}

/// At most 64 characters, and the same whatever the server thinks of upper and lower case.
std::string lock_name(std::string_view kind, std::string_view text) {
    const Digest digest = sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return fmt::format("{}:{}", kind, to_hex(std::span(digest).first(24)));
}

class MysqlFence final : public Fence {
public:
    MysqlFence(sql::Session& session, const Clock& clock, const std::string& database, std::string_view for_share)
        : Fence(session, clock, texts_of(database, for_share)), database_(database) {}

    [[nodiscard]] Result<void> enter_connection(const FenceClaim& claim, Deadline deadline) override {
        if (!has_connection_locks())
            return fail(Errc::store_unsafe,
                        fmt::format("{} is {}: a statement that commits by itself cannot be fenced there, because the "
                                    "next holder could not end its connection",
                                    session().place(), session().server().tidb ? "TiDB" : "reached through a proxy"));
        const auto locked = take_locks(claim, deadline);
        if (!locked) return std::unexpected(locked.error());
        if (!*locked)
            return fail(Errc::lock_conflict,
                        fmt::format("another connection runs a fenced statement for \"{}\"", claim.name.text()));
        // Without a row lock, which nothing would hold. A seal that comes after this read looks for the locks above.
        const auto newest = row(claim.name, deadline);
        if (newest && *newest && (*newest)->store_id == claim.store_id && (*newest)->token == claim.token &&
            (*newest)->lock_id == claim.lock_id)
            return {};
        leave_connection();
        if (!newest) return std::unexpected(newest.error());
        return std::unexpected(mismatch(claim, deadline));
    }

    void leave_connection() override { release_locks(); }

protected:
    [[nodiscard]] std::vector<sql::Command> beginning(const FenceClaim& /*claim*/,
                                                      milliseconds lease_left) const override {
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease_left).count();
        // MySQL has no limit for transactions alone; this one is taken back at their end.
        const auto* const limit = session().server().mariadb ? "idle_transaction_timeout" : "wait_timeout";
        return {{.text = fmt::format("SET SESSION {} = {}", limit, seconds), .values = {}},
                {.text = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", .values = {}},
                {.text = "START TRANSACTION", .values = {}}};
    }

    [[nodiscard]] std::vector<sql::Command> mark(const FenceClaim& claim) const override {
        if (!has_connection_locks()) return {};
        // Another connection of the same holder may have them: then that is the one that can be found.
        return {{.text = "SELECT GET_LOCK($1, 0), GET_LOCK($2, 0)", .values = {of_lease(claim), of_name(claim)}}};
    }

    void ended() override {
        if (!session().is_usable()) return;
        release_locks();
        if (!session().server().mariadb)
            (void)session().run({.text = "SET SESSION wait_timeout = DEFAULT", .values = {}}, soon());
    }

    [[nodiscard]] std::vector<std::string> assert_statements() const override {
        return {"DO GET_LOCK('holdfast_assert', 20)", drop_assert, assert_procedure,
                "DO RELEASE_LOCK('holdfast_assert')"};
    }

    [[nodiscard]] Result<std::vector<EarlierSession>> end_earlier(const FenceClaim& claim, Deadline deadline) override {
        if (!has_connection_locks()) return std::vector<EarlierSession>();
        const auto used = session().run({.text = "SELECT IS_USED_LOCK($1), IS_USED_LOCK($2), CONNECTION_ID()",
                                         .values = {of_name(claim), of_lease(claim)}},
                                        deadline);
        if (!used) return std::unexpected(sql::error_of(used.error(), "look for a connection of an earlier holder"));
        const auto& row = used->rows.at(0);
        if (!row.at(0) || row.at(0) == row.at(1) || row.at(0) == row.at(2)) return std::vector<EarlierSession>();
        const EarlierSession earlier{std::atoll(row.at(0)->c_str()), words_of(*row.at(0), deadline)};
        const auto killed =
            session().run({.text = fmt::format("KILL CONNECTION {}", earlier.id), .values = {}}, deadline);
        if (!killed && killed.error().code != no_such_connection && killed.error().code != not_allowed)
            return std::unexpected(sql::error_of(killed.error(), "end the connection of an earlier holder"));
        return std::vector{earlier};
    }

private:
    [[nodiscard]] bool has_connection_locks() const { return !session().server().tidb && !session().server().pooled; }
    [[nodiscard]] Deadline soon() const { return Deadline::in(clock(), std::chrono::seconds{10}); }

    [[nodiscard]] std::string of_name(const FenceClaim& claim) const {
        return lock_name("hf-name", database_ + "\n" + claim.name.text());
    }
    [[nodiscard]] std::string of_lease(const FenceClaim& claim) const {
        return lock_name("hf-lease", fmt::format("{}\n{}\n{}\n{}", database_, claim.name.text(), claim.token.value,
                                                 claim.lock_id.text()));
    }

    [[nodiscard]] Result<bool> take_locks(const FenceClaim& claim, Deadline deadline) {
        const auto commands = mark(claim);
        const auto taken = session().run(commands.front(), deadline);
        if (!taken) return std::unexpected(sql::error_of(taken.error(), "fence the connection"));
        const bool both = taken->rows.at(0).at(0) == "1" && taken->rows.at(0).at(1) == "1";
        if (!both) release_locks();
        return both;
    }

    void release_locks() {
        if (session().is_usable() && has_connection_locks())
            (void)session().run({.text = "SELECT RELEASE_ALL_LOCKS()", .values = {}}, soon());
    }

    [[nodiscard]] std::string words_of(const std::string& id, Deadline deadline) {
        const auto found = session().run(
            {.text = "SELECT CONCAT('connection ', id, ' of user ', user, ' at ', host, ', ', command, ' for ', time, "
                     "' s') FROM information_schema.processlist WHERE id = " +
                     id,
             .values = {}},
            deadline);
        if (!found || found->rows.empty()) return "connection " + id;
        return found->rows[0].at(0).value_or("connection " + id);
    }

    std::string database_;
};

}  // namespace

Result<std::unique_ptr<Fence>> mysql_fence(sql::Session& session, const Clock& clock, Deadline deadline) {
    const auto found = session.run({.text = "SELECT DATABASE()", .values = {}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for holdfast_fence"));
    const std::string database = found->rows.at(0).at(0).value_or("");
    // TiDB takes the words for a share lock, and locks nothing.
    return std::make_unique<MysqlFence>(session, clock, database,
                                        session.server().tidb ? "FOR UPDATE" : "LOCK IN SHARE MODE");
}

std::string mysql_script() {
    return table("holdfast_fence") + ";\n\n" + drop_assert + ";\nDELIMITER //\n" + assert_procedure +
           "//\nDELIMITER ;\n";
}

}  // namespace holdfast::guards::fence
