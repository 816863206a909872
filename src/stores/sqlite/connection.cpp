#include "stores/sqlite/connection.hpp"

#include "base/os_error.hpp"
#include "stores/sqlite/log_file.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace holdfast::stores::sqlite {
namespace {

/// For tools other than Holdfast, which know nothing of the gate and may hold SQLite's own locks.
constexpr int busy_timeout_ms = 1000;

Errc code_of(int rc) {
    switch (rc & 0xff) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        // A row that breaks the schema's own rules, or contradicts another row.
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_FORMAT: return Errc::record_corrupt;
        // The file was moved away while it was open; otherwise it is a matter of rights.
        case SQLITE_READONLY: return rc == SQLITE_READONLY_DBMOVED ? Errc::store_unavailable : Errc::denied;
        case SQLITE_PERM:
        case SQLITE_AUTH: return Errc::denied;
        default: return rc == SQLITE_CANTOPEN_SYMLINK ? Errc::store_unsafe : Errc::store_unavailable;
    }
}

/// In the words that the other stores have for it, where SQLite's own leave a choice.
std::string words_for(int rc, std::string_view detail) {
    // The index of the log can grow unless there is no room for it.
    if ((rc & 0xff) == SQLITE_FULL || rc == SQLITE_IOERR_SHMSIZE)
        return base::os_message(ENOSPC) + ", or " + base::os_message(EDQUOT);
    return fmt::format("SQLite says \"{}\" (code {})", detail, rc);
}

}  // namespace

Error sqlite_error(int rc, std::string_view detail, std::string_view doing) {
    const Errc code = code_of(rc);
    std::string message = fmt::format("cannot {}: {}", doing, words_for(rc, detail));
    message +=
        code == Errc::record_corrupt ? "; the store stays blocked until it is repaired" : "; nothing was changed";
    return {code, std::move(message)};
}

Result<Database> Database::open(const std::string& path) {
    sqlite3* handle = nullptr;
    // Without SQLite's own mutex, because every connection here is guarded by one of ours.
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int rc = sqlite3_open_v2(path.c_str(), &handle, flags, vfs_with_spared_syncs());
    Database database(handle);
    if (handle == nullptr) return std::unexpected(sqlite_error(SQLITE_NOMEM, "out of memory", "open " + path));
    if (rc != SQLITE_OK) return std::unexpected(database.error(rc, "open " + path));
    sqlite3_busy_timeout(handle, busy_timeout_ms);
    return database;
}

Error Database::error(int rc, std::string_view doing) {
    damaged_ = damaged_ || (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
    return sqlite_error(rc, sqlite3_errmsg(handle_.get()), doing);
}

Result<void> Database::execute(const char* sql) {
    const int rc = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) return std::unexpected(error(rc, "use the store"));
    return {};
}

Result<std::int64_t> Database::number(std::string_view sql) {
    Query query(*this, sql);
    const auto row = query.step();
    if (!row) return std::unexpected(row.error());
    return *row ? query.number() : 0;
}

Result<std::string> Database::text(std::string_view sql) {
    Query query(*this, sql);
    const auto row = query.step();
    if (!row) return std::unexpected(row.error());
    return std::string(*row ? query.text() : "");
}

Result<sqlite3_stmt*> Database::prepared(std::string_view sql) {
    auto& known = prepared_[sql.data()];
    if (!known) {
        sqlite3_stmt* statement = nullptr;
        const int rc = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                          SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
        if (rc != SQLITE_OK) return std::unexpected(error(rc, "read the store"));
        known.reset(statement);
    }
    return known.get();
}

Query::Query(Database& database, std::string_view sql) : database_(database) {
    auto statement = database.prepared(sql);
    if (statement)
        statement_ = *statement;
    else
        failed_ = std::move(statement.error());
}

Query::~Query() {
    if (statement_ == nullptr) return;
    // The result of a reset is that of the last step, which was reported already. Who runs the statement next binds
    // all its parameters again, so that none is left that points to what is gone.
    sqlite3_reset(statement_);
}

void Query::check(int rc) {
    if (rc != SQLITE_OK && !failed_) failed_ = database_.error(rc, "use the store");
}

Query& Query::bind(std::int64_t value) {
    if (!failed_) check(sqlite3_bind_int64(statement_, ++parameter_, value));
    return *this;
}

Query& Query::bind_text(std::string_view text, sqlite3_destructor_type owner) {
    // An empty view may point nowhere, which SQLite would store as NULL.
    const char* data = text.empty() ? "" : text.data();
    if (!failed_) check(sqlite3_bind_text64(statement_, ++parameter_, data, text.size(), owner, SQLITE_UTF8));
    return *this;
}

Query& Query::bind_blob(std::span<const std::uint8_t> blob, sqlite3_destructor_type owner) {
    if (!failed_) check(sqlite3_bind_blob64(statement_, ++parameter_, blob.data(), blob.size(), owner));
    return *this;
}

Query& Query::bind_null() {
    if (!failed_) check(sqlite3_bind_null(statement_, ++parameter_));
    return *this;
}

Result<bool> Query::step() {
    if (failed_) return std::unexpected(*failed_);
    column_ = 0;
    intact_ = true;
    const int rc = sqlite3_step(statement_);
    if (rc == SQLITE_ROW) return true;
    if (rc == SQLITE_DONE) return false;
    return std::unexpected(database_.error(rc, "use the store"));
}

Result<void> Query::run() {
    const auto row = step();
    if (!row) return std::unexpected(row.error());
    return {};
}

bool Query::expect(int type) {
    const bool fits = sqlite3_column_type(statement_, column_) == type;
    if (!fits) intact_ = false;
    return fits;
}

std::int64_t Query::number() {
    const std::int64_t value = expect(SQLITE_INTEGER) ? sqlite3_column_int64(statement_, column_) : 0;
    ++column_;
    return value;
}

std::string_view Query::text() {
    std::string_view value;
    if (expect(SQLITE_TEXT)) {
        const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
        if (data != nullptr) value = {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_))};
    }
    ++column_;
    return value;
}

std::span<const std::uint8_t> Query::blob() {
    std::span<const std::uint8_t> value;
    if (expect(SQLITE_BLOB)) {
        const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column_));
        if (data != nullptr) value = {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_))};
    }
    ++column_;
    return value;
}

bool Query::at_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

Result<Transaction> Transaction::immediate(Database& database) {
    if (auto begun = Query(database, "BEGIN IMMEDIATE").run(); !begun) return std::unexpected(begun.error());
    return Transaction(database);
}

Result<Transaction> Transaction::snapshot(Database& database) {
    if (auto begun = Query(database, "BEGIN").run(); !begun) return std::unexpected(begun.error());
    return Transaction(database);
}

Transaction::~Transaction() {
    if (database_ == nullptr || !database_->in_transaction()) return;
    // A rollback has nothing to report to: whoever could not commit has said so. If even this fails, the
    // connection stays in its transaction, and the session drops a connection in that state.
    static_cast<void>(Query(*database_, "ROLLBACK").run());
}

Result<void> Transaction::commit() {
    auto statement = database_->prepared("COMMIT");
    if (!statement) return std::unexpected(statement.error());
    const int rc = sqlite3_step(*statement);
    // Before the reset, which clears SQLite's own words.
    std::optional<Error> error;
    if (rc != SQLITE_DONE) error = database_->error(rc, "commit");
    const std::string words = words_for(rc, sqlite3_errmsg(database_->handle()));
    sqlite3_reset(*statement);
    if (!error) return {};
    // The log may hold a whole transaction whose fsync failed, and then a crash decides whether it counts.
    // A full disk is different: a frame was cut short, so the last one, which commits, cannot be valid.
    if ((rc & 0xff) == SQLITE_IOERR)
        return fail(Errc::outcome_unknown, "nobody knows whether the change was stored: " + words);
    return std::unexpected(std::move(*error));
}

}  // namespace holdfast::stores::sqlite
