#include "database.hpp"

#include <sqlite3.h>

#include <stdexcept>
#include <type_traits>
#include <variant>

namespace cockpit {
namespace {

using holdfast::SqlBytes;
using holdfast::SqlValue;

constexpr int patience_ms = 10'000;

constexpr auto schema = R"(
CREATE TABLE IF NOT EXISTS projects (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS dashboards (
    project TEXT NOT NULL, id TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL,
    version INTEGER NOT NULL, saved_by TEXT NOT NULL, saved_at TEXT NOT NULL,
    PRIMARY KEY (project, id));
CREATE TABLE IF NOT EXISTS kept_drafts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, dashboard TEXT NOT NULL, user TEXT NOT NULL,
    tab TEXT NOT NULL, text TEXT NOT NULL, base_version INTEGER NOT NULL, kept_at TEXT NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, user TEXT NOT NULL);
INSERT OR IGNORE INTO projects VALUES ('apollo', 'Apollo'), ('gemini', 'Gemini');
INSERT OR IGNORE INTO dashboards
    SELECT p.id, d.column1, d.column2, d.column3, d.column4 || p.name || '.', 1, 'the sample',
           strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    FROM projects p, (VALUES ('architecture', 1, 'Architecture', 'How the parts fit together in '),
                             ('techstack', 2, 'Tech stack', 'What is used, and why, in '),
                             ('roadmap', 3, 'Roadmap', 'What comes next in ')) d;
)";

struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

holdfast::Error failure(sqlite3* database) {
    const bool is_busy = sqlite3_errcode(database) == SQLITE_BUSY;
    return {is_busy ? holdfast::Errc::store_unavailable : holdfast::Errc::config,
            std::string("the sample's database: ") + sqlite3_errmsg(database)};
}

void bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
    std::visit(
        [&]<class Value>(const Value& bound) {
            if constexpr (std::is_same_v<Value, std::monostate>) {
                sqlite3_bind_null(statement, place);
            } else if constexpr (std::is_same_v<Value, std::int64_t>) {
                sqlite3_bind_int64(statement, place, bound);
            } else if constexpr (std::is_same_v<Value, SqlBytes>) {
                sqlite3_bind_blob64(statement, place, bound.bytes.data(), bound.bytes.size(), SQLITE_TRANSIENT);
            } else {
                sqlite3_bind_text64(statement, place, bound.data(), bound.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
            }
        },
        value);
}

std::vector<holdfast::SqlCell> row_of(sqlite3_stmt* statement) {
    std::vector<holdfast::SqlCell> row;
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
        const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
        row.push_back(text == nullptr ? std::nullopt : holdfast::SqlCell(std::string(text, size)));
    }
    return row;
}

}  // namespace

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Database::Database(const std::string& file) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open(file.c_str(), &opened);
    database_.reset(opened);
    if (status != SQLITE_OK) throw std::runtime_error("cannot open " + file);
    sqlite3_busy_timeout(opened, patience_ms);
    if (sqlite3_exec(opened, schema, nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(failure(opened).message);
}

holdfast::Result<Rows> Database::run(const std::string& sql, const std::vector<SqlValue>& values) {
    const std::scoped_lock lock(mutex_);
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK)
        return std::unexpected(failure(database_.get()));
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
    for (std::size_t i = 0; i < values.size(); ++i) bind(prepared, static_cast<int>(i) + 1, values[i]);
    Rows rows;
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(prepared)) == SQLITE_ROW) rows.push_back(row_of(prepared));
    if (status != SQLITE_DONE) return std::unexpected(failure(database_.get()));
    return rows;
}

}  // namespace cockpit
