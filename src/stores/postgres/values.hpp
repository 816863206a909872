#pragma once

#include "base/frame.hpp"
#include "holdfast/lease.hpp"

#include <cstdint>
#include <libpq-fe.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Values on their way to and from the server, in PostgreSQL's binary forms: nothing is quoted, and no name or
/// text can become part of a statement.
namespace holdfast::stores::postgres {

enum class Type : Oid { bytes = 17, number = 20, text = 25, uuid = 2950 };

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

/// A statement with what is bound to its $1, $2…
class Statement {
public:
    explicit Statement(std::string_view sql) : sql_(sql) {}
    Statement& bind(std::optional<std::int64_t> number);
    Statement& bind(std::string_view text);
    Statement& bind(const std::optional<base::ByteView>& bytes);
    Statement& bind(const std::optional<LockId>& lock_id);
    Statement& bind(const Array& array);

    /// Queues it on a connection that is in pipeline mode. False if that failed.
    [[nodiscard]] bool send(PGconn& connection) const;

private:
    void bind(Oid type, std::optional<base::Bytes> value);

    std::string sql_;
    std::vector<Oid> types_{};
    std::vector<std::optional<base::Bytes>> values_{};
};

/// What one statement answered.
class Rows {
public:
    Rows() = default;
    explicit Rows(PGresult* result) : result_(result, PQclear) {}

    [[nodiscard]] int count() const { return PQntuples(result_.get()); }
    [[nodiscard]] PGresult* get() const { return result_.get(); }

    [[nodiscard]] bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
    /// Zero for NULL.
    [[nodiscard]] std::int64_t number(int row, int column) const;
    [[nodiscard]] bool flag(int row, int column) const;
    [[nodiscard]] base::ByteView bytes(int row, int column) const;
    [[nodiscard]] std::string_view text(int row, int column) const;
    /// Absent for NULL.
    [[nodiscard]] std::optional<LockId> lock_id(int row, int column) const;

private:
    std::unique_ptr<PGresult, decltype(&PQclear)> result_{nullptr, PQclear};
};

}  // namespace holdfast::stores::postgres
