#pragma once

#include "holdfast/error.hpp"
#include "sql/error_class.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// SQLite's own types, so that its header stays out of this one.
struct sqlite3;
struct sqlite3_stmt;

/// SQLite's C interface with owners and with our errors. Knows nothing of locks.
namespace holdfast::sql::sqlite {

/// The error for SQLite's result code `rc`, of a statement that changed nothing or was rolled back.
///
/// `doing` completes "cannot …".
[[nodiscard]] Error sqlite_error(int rc, std::string_view detail, std::string_view doing);

/// By SQLite's extended result code.
[[nodiscard]] ErrorClass error_class_of(int rc);

/// SQLite counts the memory that it takes, under a mutex. This ends that for the whole process, if it has not used
/// SQLite yet.
void stop_counting_memory();

/// One connection. Not for two threads at once, and never across a fork.
class Database {
public:
    /// Opens a file that exists; a symbolic link is refused. Reads nothing yet. `vfs` is the name of the layer through
    /// which SQLite reaches its files; null for its own.
    [[nodiscard]] static Result<Database> open(const std::string& path, const char* vfs = nullptr);
    /// The same for a file that nothing can be written to. Where others cannot
    /// write either, no lock is taken, and no file beside it is looked for.
    enum class Others { may_write, cannot_write };
    [[nodiscard]] static Result<Database> open_to_read(const std::string& path, Others others);

    /// Ends the statement that another thread runs on this connection; it fails as `cancelled`. Without effect when
    /// none runs. The one call that may come from another thread.
    void cancel() const;

    [[nodiscard]] Result<void> execute(const char* sql);
    /// The first column of the first row.
    [[nodiscard]] Result<std::int64_t> number(std::string_view sql);
    [[nodiscard]] Result<std::string> text(std::string_view sql);

    /// The prepared form of `sql`, which must stay where it is as long as the connection lives: a literal.
    [[nodiscard]] Result<sqlite3_stmt*> prepared(std::string_view sql);

    /// By the last statement that changes any.
    [[nodiscard]] int changed_rows() const;
    [[nodiscard]] bool in_transaction() const;
    /// Whether SQLite itself has met damage. Then nothing more should be written.
    [[nodiscard]] bool damaged() const { return damaged_; }
    [[nodiscard]] Error error(int rc, std::string_view doing);
    [[nodiscard]] sqlite3* handle() const { return handle_.get(); }

private:
    [[nodiscard]] static Result<Database> open(const std::string& place, const std::string& path, int mode,
                                               const char* vfs);

    struct Close {
        void operator()(sqlite3* handle) const;
    };
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };

    explicit Database(sqlite3* handle) : handle_(handle) {}

    std::unique_ptr<sqlite3, Close> handle_;
    /// After the connection, so that it goes before it.
    std::map<const char*, std::unique_ptr<sqlite3_stmt, Finalize>> prepared_{};
    bool damaged_ = false;
};

/// One run of a prepared statement: bind, step, read columns. Gives the statement back when it goes.
///
/// What goes wrong on the way, a value that cannot be bound or a column of another type, is kept, and
/// reported by `step()` and `read_all()`.
class Query {
public:
    Query(Database& database, std::string_view sql);
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    ~Query();

    /// Binds the next parameter. What is seen through a view must outlive the query; what is handed over is copied.
    Query& bind(std::int64_t value);
    Query& bind(std::string_view text) { return bind_text(text, Lifetime::outlives_query); }
    Query& bind(const std::string& text) { return bind_text(text, Lifetime::outlives_query); }
    Query& bind(std::string&& text) { return bind_text(text, Lifetime::copied); }
    Query& bind(std::span<const std::uint8_t> blob) { return bind_blob(blob, Lifetime::outlives_query); }
    Query& bind(std::vector<std::uint8_t>&& blob) { return bind_blob(blob, Lifetime::copied); }
    Query& bind_null();

    /// True while there is a row.
    [[nodiscard]] Result<bool> step();
    /// For statements without rows.
    [[nodiscard]] Result<void> run();

    // The next column of the current row. What has another type reads as empty, and `intact()` is false.
    std::int64_t number();
    std::string_view text();
    std::span<const std::uint8_t> blob();
    /// Looks at the next column without reading it.
    [[nodiscard]] bool at_null() const;
    void skip(int columns = 1) { column_ += columns; }

    /// Marks the row as one that cannot be read.
    void spoil() { intact_ = false; }
    [[nodiscard]] bool intact() const { return intact_; }

private:
    enum class Lifetime { outlives_query, copied };

    Query& bind_text(std::string_view text, Lifetime lifetime);
    Query& bind_blob(std::span<const std::uint8_t> blob, Lifetime lifetime);
    void check(int rc);
    [[nodiscard]] bool expect(int type);

    Database& database_;
    sqlite3_stmt* statement_ = nullptr;
    std::optional<Error> failed_{};
    int parameter_ = 0;
    int column_ = 0;
    bool intact_ = true;
};

/// A transaction that is rolled back unless it was committed.
class Transaction {
public:
    /// For writing: takes the write lock at once. A transaction that reads first and writes later fails
    /// with SQLITE_BUSY_SNAPSHOT instead of waiting when another one came in between.
    [[nodiscard]] static Result<Transaction> immediate(Database& database);
    /// For reading several rows of one moment.
    [[nodiscard]] static Result<Transaction> snapshot(Database& database);

    Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();

    /// After an error nothing was changed, except with `outcome_unknown`.
    [[nodiscard]] Result<void> commit();

private:
    explicit Transaction(Database& database) : database_(&database) {}
    Database* database_;
};

}  // namespace holdfast::sql::sqlite
