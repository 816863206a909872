#include "sql/sqlite/session.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "sql/sqlite/connection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <thread>

namespace holdfast::sql::sqlite {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// How long a statement without a deadline waits for another writer. Others may hold the file for as long as their
/// transaction takes, and the caller asks again.
constexpr milliseconds longest_busy{10'000};
constexpr milliseconds between_looks{2};
/// Of SQLite's virtual machine, between looks at the deadline.
constexpr int operations_between_looks = 4000;

struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

struct Bind {
    sqlite3_stmt* statement;
    int at;

    int operator()(std::monostate) const { return sqlite3_bind_null(statement, at); }
    int operator()(std::int64_t number) const { return sqlite3_bind_int64(statement, at, number); }
    int operator()(const std::string& text) const {
        return sqlite3_bind_text64(statement, at, text.c_str(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(const SqlBytes& bytes) const {
        return sqlite3_bind_blob64(statement, at, bytes.bytes.c_str(), bytes.bytes.size(), SQLITE_STATIC);
    }
};

SqlCell cell_of(sqlite3_stmt* statement, int column) {
    const int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_NULL) return std::nullopt;
    const void* const data = type == SQLITE_BLOB ? sqlite3_column_blob(statement, column)
                                                 : static_cast<const void*>(sqlite3_column_text(statement, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

StatementError error_of(sqlite3* handle, int rc) {
    return {error_class_of(rc), fmt::format("SQLite {}", rc), sqlite3_errmsg(handle)};
}

/// One statement, run again for each row.
class SqliteRowWriter final : public RowWriter {
public:
    explicit SqliteRowWriter(Prepared insert) : insert_(std::move(insert)) {}

    [[nodiscard]] std::expected<void, StatementError> add(
        std::span<const std::optional<std::string_view>> cells) override {
        sqlite3_stmt* const statement = insert_.get();
        int rc = SQLITE_OK;
        for (std::size_t i = 0; i < cells.size() && rc == SQLITE_OK; ++i) {
            const int at = static_cast<int>(i) + 1;
            const char* const data = cells[i] && cells[i]->data() != nullptr ? cells[i]->data() : "";
            rc = cells[i] ? sqlite3_bind_text64(statement, at, data, cells[i]->size(), SQLITE_STATIC, SQLITE_UTF8)
                          : sqlite3_bind_null(statement, at);
        }
        if (rc == SQLITE_OK) rc = sqlite3_step(statement);
        if (rc != SQLITE_DONE) {
            auto error = error_of(sqlite3_db_handle(statement), rc);
            sqlite3_reset(statement);
            return std::unexpected(std::move(error));
        }
        sqlite3_reset(statement);
        ++written_;
        return {};
    }
    [[nodiscard]] std::expected<void, StatementError> finish() override { return {}; }
    [[nodiscard]] std::optional<std::uint64_t> refused_row() const override { return written_; }

private:
    Prepared insert_;
    std::uint64_t written_ = 0;
};

class SqliteSession final : public Session {
public:
    SqliteSession(Database database, std::string place, const Clock& clock)
        : database_(std::move(database)), place_(std::move(place)), clock_(&clock) {
        server_.version = sqlite3_libversion();
        sqlite3_busy_handler(handle(), keep_waiting, this);
        sqlite3_progress_handler(handle(), operations_between_looks, out_of_time, this);
    }

    [[nodiscard]] SqlDialect dialect() const override { return SqlDialect::sqlite; }
    [[nodiscard]] const ServerKind& server() const override { return server_; }
    [[nodiscard]] std::int64_t server_id() const override { return 0; }
    [[nodiscard]] const std::string& place() const override { return place_; }
    [[nodiscard]] bool is_usable() const override { return true; }

    void cancel() override {
        cancelled_ = true;
        database_.cancel();
    }

    [[nodiscard]] std::expected<SqlAnswer, StatementError> run(const Command& command, Deadline deadline) override {
        cancelled_ = false;
        deadline_ = deadline;
        busy_until_ = Deadline::in(*clock_, longest_busy);
        auto prepared = prepare(command.text);
        if (!prepared) return std::unexpected(std::move(prepared.error()));
        sqlite3_stmt* const statement = prepared->get();
        if (statement == nullptr) return SqlAnswer{};
        for (std::size_t i = 0; i < command.values.size(); ++i) {
            const int at = sqlite3_bind_parameter_index(statement, fmt::format("${}", i + 1).c_str());
            if (at == 0) continue;
            if (const int rc = std::visit(Bind{statement, at}, command.values[i]); rc != SQLITE_OK)
                return std::unexpected(error(rc));
        }
        return answer_of(statement);
    }

    [[nodiscard]] std::expected<std::unique_ptr<RowWriter>, StatementError> write_rows(
        const std::string& table, const std::vector<std::string>& columns) override {
        cancelled_ = false;
        deadline_ = Deadline::never();
        busy_until_ = Deadline::in(*clock_, longest_busy);
        auto insert = prepare(fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(columns, ", "),
                                          fmt::join(std::vector<std::string_view>(columns.size(), "?"), ", ")));
        if (!insert) return std::unexpected(std::move(insert.error()));
        return std::make_unique<SqliteRowWriter>(*std::move(insert));
    }

private:
    [[nodiscard]] sqlite3* handle() const { return database_.handle(); }
    [[nodiscard]] StatementError error(int rc) const { return error_of(handle(), rc); }

    [[nodiscard]] std::expected<Prepared, StatementError> prepare(std::string_view text) const {
        sqlite3_stmt* statement = nullptr;
        const char* rest = nullptr;
        const int rc = sqlite3_prepare_v3(handle(), text.data(), static_cast<int>(text.size()), 0, &statement, &rest);
        Prepared first(statement);
        if (rc != SQLITE_OK) return std::unexpected(error(rc));
        // What follows may be comments, but no second statement, which would be left out without a word.
        const auto left = static_cast<int>(text.data() + text.size() - rest);
        sqlite3_stmt* second = nullptr;
        if (left > 0) sqlite3_prepare_v3(handle(), rest, left, 0, &second, nullptr);
        const Prepared other(second);
        if (other) return std::unexpected(StatementError{ErrorClass::other, "", "this is more than one statement"});
        return first;
    }

    [[nodiscard]] std::expected<SqlAnswer, StatementError> answer_of(sqlite3_stmt* statement) const {
        SqlAnswer answer;
        const int columns = sqlite3_column_count(statement);
        for (int i = 0; i < columns; ++i) answer.columns.emplace_back(sqlite3_column_name(statement, i));
        int rc = sqlite3_step(statement);
        for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
            auto& row = answer.rows.emplace_back();
            for (int i = 0; i < columns; ++i) row.push_back(cell_of(statement, i));
        }
        if (rc != SQLITE_DONE) return std::unexpected(error(rc));
        if (sqlite3_stmt_readonly(statement) == 0) answer.changed = sqlite3_changes(handle());
        return answer;
    }

    /// Called by SQLite while another connection has the file.
    static int keep_waiting(void* self, int /*times*/) {
        const auto& session = *static_cast<const SqliteSession*>(self);
        const bool over = session.deadline_.passed(*session.clock_) || session.busy_until_.passed(*session.clock_);
        if (over || session.cancelled_) return 0;
        std::this_thread::sleep_for(between_looks);
        return 1;
    }
    /// Called by SQLite while a statement runs; anything but 0 ends it.
    static int out_of_time(void* self) {
        const auto& session = *static_cast<const SqliteSession*>(self);
        return session.deadline_.passed(*session.clock_) ? 1 : 0;
    }

    Database database_;
    std::string place_;
    const Clock* clock_;
    ServerKind server_{};
    Deadline deadline_ = Deadline::never();
    Deadline busy_until_ = Deadline::never();
    std::atomic<bool> cancelled_{false};
};

/// An empty file is an empty database. One that is there is not touched: closing it again would drop the locks that
/// another connection of this process has on it.
Result<void> make_file(const fs::path& path) {
    const base::Fd made(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made && errno != EEXIST) return std::unexpected(base::os_error(errno, "create " + path.string()));
    return {};
}

}  // namespace

Result<std::unique_ptr<Session>> open_session(const base::Url& url, IfAbsent if_absent, const Clock& clock) {
    const std::string shown = url.redacted();
    if (url.place.empty() || url.has_authority)
        return fail(Errc::usage, "a SQLite database is named by sqlite:FILE or sqlite:///absolute/file");
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    // SQLite refuses links in the whole path; those of folders are the user's business.
    std::error_code failed;
    const fs::path given = fs::absolute(url.place, failed);
    const fs::path path = fs::weakly_canonical(given.parent_path(), failed) / given.filename();
    if (!fs::exists(path, failed)) {
        if (if_absent == IfAbsent::refuse) return fail(Errc::config, fmt::format("{} does not exist", path.string()));
        if (auto made = make_file(path); !made) return std::unexpected(made.error());
    }
    auto database = Database::open(path.string());
    if (!database) return std::unexpected(database.error());
    return std::make_unique<SqliteSession>(std::move(*database), shown, clock);
}

}  // namespace holdfast::sql::sqlite
