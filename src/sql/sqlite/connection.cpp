#include "sql/sqlite/connection.hpp"

#include "base/os_error.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

namespace holdfast::sql::sqlite {
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

void stop_counting_memory() { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

Error sqlite_error(int rc, std::string_view detail, std::string_view doing) {
    const Errc code = code_of(rc);
    std::string message = fmt::format("cannot {}: {}", doing, words_for(rc, detail));
    message +=
        code == Errc::record_corrupt ? "; the store stays blocked until it is repaired" : "; nothing was changed";
    return {code, std::move(message)};
}

ErrorClass error_class_of(int rc) {
    switch (rc & 0xff) {
        case SQLITE_BUSY: return rc == SQLITE_BUSY_SNAPSHOT ? ErrorClass::conflict : ErrorClass::lock_busy;
        case SQLITE_LOCKED: return ErrorClass::lock_busy;
        case SQLITE_INTERRUPT: return ErrorClass::cancelled;
        case SQLITE_CONSTRAINT:
            return rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_ROWID
                       ? ErrorClass::duplicate
                       : ErrorClass::constraint;
        case SQLITE_PERM:
        case SQLITE_AUTH: return ErrorClass::denied;
        case SQLITE_READONLY: return ErrorClass::read_only;
        case SQLITE_FULL:
        case SQLITE_NOMEM: return ErrorClass::out_of_space;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB: return ErrorClass::damaged;
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN: return ErrorClass::connection_lost;
        default: return ErrorClass::other;
    }
}

Result<Database> Database::open(const std::string& path, const char* vfs) {
    return open(path, path, SQLITE_OPEN_READWRITE, vfs);
}

Result<Database> Database::open_to_read(const std::string& path, Others others) {
    if (others == Others::may_write) return open(path, path, SQLITE_OPEN_READONLY, nullptr);
    std::string url = "file:";
    for (const char c : path) {
        const bool is_plain = c != '%' && c != '?' && c != '#';
        url += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return open(url + "?immutable=1", path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
}

Result<Database> Database::open(const std::string& place, const std::string& path, int mode, const char* vfs) {
    sqlite3* handle = nullptr;
    // Without SQLite's own mutex, because every connection here is guarded by one of ours.
    const int flags = mode | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int rc = sqlite3_open_v2(place.c_str(), &handle, flags, vfs);
    Database database(handle);
    if (handle == nullptr) return std::unexpected(sqlite_error(SQLITE_NOMEM, "out of memory", "open " + path));
    if (rc != SQLITE_OK) {
        // SQLite has one code for everything that cannot be opened; a missing right must not look like a store that is
        // away.
        const int reason = sqlite3_system_errno(handle);
        if ((rc & 0xff) == SQLITE_CANTOPEN && (reason == EACCES || reason == EPERM))
            return std::unexpected(base::os_error(reason, "open " + path));
        return std::unexpected(database.error(rc, "open " + path));
    }
    sqlite3_busy_timeout(handle, busy_timeout_ms);
    return database;
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }
void Database::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Database::cancel() const { sqlite3_interrupt(handle_.get()); }
int Database::changed_rows() const { return sqlite3_changes(handle_.get()); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

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
    // The result of a reset is that of the last step, which was reported already. The next run binds all parameters
    // again, so none is left that points to memory that is gone.
    sqlite3_reset(statement_);
}

void Query::check(int rc) {
    if (rc != SQLITE_OK && !failed_) failed_ = database_.error(rc, "use the store");
}

Query& Query::bind(std::int64_t value) {
    if (!failed_) check(sqlite3_bind_int64(statement_, ++parameter_, value));
    return *this;
}

Query& Query::bind_text(std::string_view text, Lifetime lifetime) {
    // An empty view may point nowhere, which SQLite would store as NULL.
    const char* data = text.empty() ? "" : text.data();
    if (!failed_)
        check(sqlite3_bind_text64(statement_, ++parameter_, data, text.size(),
                                  lifetime == Lifetime::copied ? SQLITE_TRANSIENT : SQLITE_STATIC, SQLITE_UTF8));
    return *this;
}

Query& Query::bind_blob(std::span<const std::uint8_t> blob, Lifetime lifetime) {
    if (!failed_)
        check(sqlite3_bind_blob64(statement_, ++parameter_, blob.data(), blob.size(),
                                  lifetime == Lifetime::copied ? SQLITE_TRANSIENT : SQLITE_STATIC));
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
    // A rollback has no caller to report to: the failed commit was reported. If even this fails, the
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

}  // namespace holdfast::sql::sqlite
