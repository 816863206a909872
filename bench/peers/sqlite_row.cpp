#include "peers/sqlite_row.hpp"

#include "harness/programs.hpp"

#include <sqlite3.h>

namespace holdfast::bench {
namespace {

class SqliteRow final : public Client {
public:
    SqliteRow(const std::string& file, const std::string& synchronous, int batch) : batch_(batch) {
        if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK) give_up("cannot open " + file);
        execute("PRAGMA journal_mode = WAL");
        execute("PRAGMA synchronous = " + synchronous);
        execute("CREATE TABLE IF NOT EXISTS lease (name TEXT PRIMARY KEY, holder TEXT, expires_at INTEGER)");
        insert_ = prepare("INSERT INTO lease (name, holder, expires_at) VALUES (?, 'me', 1800000000000)");
        remove_ = prepare("DELETE FROM lease WHERE name = ? AND holder = 'me'");
    }
    SqliteRow(const SqliteRow&) = delete;
    SqliteRow& operator=(const SqliteRow&) = delete;
    ~SqliteRow() override {
        sqlite3_finalize(insert_);
        sqlite3_finalize(remove_);
        sqlite3_close(database_);
    }

    int work() override {
        if (batch_ > 1) execute("BEGIN IMMEDIATE");
        for (int i = 0; i < batch_; ++i) {
            const std::string name = "lock/" + std::to_string(count_++);
            run(insert_, name);
            run(remove_, name);
        }
        if (batch_ > 1) execute("COMMIT");
        return batch_;
    }

private:
    void execute(const std::string& sql) {
        if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) give_up(sql);
    }
    sqlite3_stmt* prepare(const char* sql) {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) give_up(sql);
        return statement;
    }
    static void run(sqlite3_stmt* statement, const std::string& name) {
        sqlite3_bind_text(statement, 1, name.c_str(), -1, SQLITE_TRANSIENT);
        if (sqlite3_step(statement) != SQLITE_DONE) give_up("the lease row was not written");
        sqlite3_reset(statement);
    }

    const int batch_;
    sqlite3* database_ = nullptr;
    sqlite3_stmt* insert_ = nullptr;
    sqlite3_stmt* remove_ = nullptr;
    int count_ = 0;
};

}  // namespace

std::unique_ptr<Client> sqlite_row(const std::string& file, const std::string& synchronous, int batch) {
    return std::make_unique<SqliteRow>(file, synchronous, batch);
}

}  // namespace holdfast::bench
