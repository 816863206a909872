#pragma once

#include "base/frame.hpp"
#include "holdfast/lease.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Values on their way to and from the server, in PostgreSQL's binary forms: nothing is quoted, and no name or
/// text can become part of a statement.
// libpq's own types, so that its header stays out of this one.
struct pg_conn;
struct pg_result;

namespace holdfast::sql::postgres {

enum class Type : unsigned { bytes = 17, number = 20, text = 25, uuid = 2950 };

/// An array of one type, which a statement takes apart with unnest(): one statement for any number of rows.
class Array {
public:
    explicit Array(Type type) : type_(type) {}
    void add(std::int64_t number);
    void add(std::uint64_t number) { add(static_cast<std::int64_t>(number)); }
    void add(Instant instant) { add(static_cast<std::int64_t>(instant.time_since_epoch().count())); }
    void add(std::string_view bytes);
    void add(base::ByteView bytes);
    void add(const LockId& lock_id) { add(base::ByteView(lock_id.bytes())); }
    void add_null();
    template <class T>
    void add(const std::optional<T>& value) {
        value ? add(*value) : add_null();
    }

    [[nodiscard]] Type type() const { return type_; }
    [[nodiscard]] base::Bytes encoded() const;

private:
    Type type_;
    std::int32_t count_ = 0;
    bool has_null_ = false;
    base::Bytes elements_{};
};

/// The text of a statement that is sent again and again. A session of our own parses and plans it once, under a name
/// that follows from the text: one name never means two things.
class RepeatedText {
public:
    RepeatedText() = default;
    RepeatedText& operator=(std::string sql);
    [[nodiscard]] const std::string& sql() const { return sql_; }
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string sql_{};
    std::string name_{};
};

/// A statement with what is bound to its $1, $2…
class Statement {
public:
    explicit Statement(std::string_view sql) : sql_(sql) {}
    explicit Statement(const RepeatedText& text) : sql_(text.sql()), name_(text.name()) {}
    Statement& bind(std::optional<std::int64_t> number);
    Statement& bind(std::string_view text);
    Statement& bind(const std::optional<base::ByteView>& bytes);
    Statement& bind(const std::optional<LockId>& lock_id);
    Statement& bind(const Array& array);
    /// A NULL whose type the server finds out.
    Statement& bind_null();
    /// The server answers as it would to a person, instead of in its binary forms.
    Statement& answer_as_text();

    /// Under which a session may keep it. Empty for one that is not repeated.
    [[nodiscard]] const std::string& name() const { return name_; }

    /// These queue something on a connection that is in pipeline mode. False if that failed.
    /// The statement, text and all: for sessions that are not ours alone.
    [[nodiscard]] bool send(pg_conn& connection) const;
    /// Its text, to be kept.
    [[nodiscard]] bool prepare(pg_conn& connection) const;
    /// The statement, whose text the session has kept.
    [[nodiscard]] bool send_prepared(pg_conn& connection) const;

private:
    struct Values;
    [[nodiscard]] Values values() const;
    void bind(Type type, std::optional<base::Bytes> value);

    std::string sql_;
    std::string name_{};
    std::vector<unsigned> types_{};
    std::vector<std::optional<base::Bytes>> values_{};
    bool as_text_ = false;
};

/// What one statement answered.
class Rows {
public:
    Rows() = default;
    explicit Rows(pg_result* result) : result_(result) {}

    [[nodiscard]] int count() const;
    /// What the server says it did: `COMMIT`, or `ROLLBACK` for a COMMIT of a transaction that had failed.
    [[nodiscard]] std::string_view command() const;
    [[nodiscard]] pg_result* get() const { return result_.get(); }

    [[nodiscard]] bool is_null(int row, int column) const;
    /// Zero for NULL.
    [[nodiscard]] std::int64_t number(int row, int column) const;
    [[nodiscard]] bool flag(int row, int column) const;
    [[nodiscard]] base::ByteView bytes(int row, int column) const;
    [[nodiscard]] std::string_view text(int row, int column) const;
    /// Absent for NULL.
    [[nodiscard]] std::optional<LockId> lock_id(int row, int column) const;

private:
    struct Clear {
        void operator()(pg_result* result) const;
    };
    std::unique_ptr<pg_result, Clear> result_{};
};

}  // namespace holdfast::sql::postgres
