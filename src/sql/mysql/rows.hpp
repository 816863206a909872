#pragma once

#include "sql/mysql/sql.hpp"

#include <string>
#include <string_view>
#include <vector>

// The driver's own type, so that its header stays out of this one.
struct st_mysql_bind;

namespace holdfast::sql::mysql {

/// Rows for an INSERT, as text. They are written value by value, from left to right.
class TextRows {
public:
    void begin() { sql_ << between_rows_.next() << "("; }
    void end() {
        sql_ << ")";
        between_values_ = {};
    }
    void value(std::string_view bytes) { (sql_ << between_values_.next()).value(bytes); }
    void value(base::ByteView bytes) { (sql_ << between_values_.next()).value(bytes); }
    template <class Number>
    void number(Number number) {
        sql_ << between_values_.next() << number;
    }
    /// Where a number or bytes might stand.
    void no_number() { (sql_ << between_values_.next()).null(); }
    void no_value() { no_number(); }

    [[nodiscard]] const Sql& sql() const { return sql_; }

private:
    Sql sql_{};
    Comma between_rows_{};
    Comma between_values_{};
};

/// The same as values that are bound to a statement with one parameter for each column: the server then parses nothing.
class BoundRows {
public:
    void begin() { column_ = 0; }
    void end() { ++count_; }
    void value(std::string_view bytes);
    void value(base::ByteView bytes);
    void number(std::int64_t number);
    void number(std::uint64_t count) { number(static_cast<std::int64_t>(count)); }
    void number(Instant instant) { number(std::int64_t{instant.time_since_epoch().count()}); }
    void no_number();
    void no_value();

    [[nodiscard]] std::size_t count() const { return count_; }
    /// What the driver is to be given. Points into this object.
    [[nodiscard]] std::vector<st_mysql_bind> binds();

private:
    struct Column {
        bool is_number = false;
        std::vector<std::int64_t> numbers{};
        std::vector<std::size_t> begins{};  ///< Of the bytes, in bytes_.
        std::vector<unsigned long> lengths{};
        std::vector<char*> pointers{};
        std::vector<char> indicators{};
    };

    Column& next();

    std::vector<Column> columns_{};
    std::string bytes_{};
    std::size_t column_ = 0;
    std::size_t count_ = 0;
};

}  // namespace holdfast::sql::mysql
