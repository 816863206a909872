#include "sql/postgres/values.hpp"

#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <algorithm>
#include <libpq-fe.h>
#include <span>
#include <type_traits>

namespace holdfast::sql::postgres {
namespace {

static_assert(std::is_same_v<Oid, unsigned>, "Type and the bound types stand for libpq's Oid");

template <class T>
void put(base::Bytes& out, T value) {
    for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
        out.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> shift));
}

base::Bytes bytes_of(std::int64_t number) {
    base::Bytes out;
    put(out, number);
    return out;
}

base::ByteView view_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The type of an array of `type`.
Type array_of(Type type) {
    switch (type) {
        case Type::bytes: return Type{1001};
        case Type::number: return Type{1016};
        case Type::text: return Type{1009};
        case Type::uuid: break;
    }
    return Type{2951};
}

}  // namespace

void Array::add(std::int64_t number) { add(base::ByteView(bytes_of(number))); }

void Array::add(std::string_view bytes) { add(view_of(bytes)); }

void Array::add(base::ByteView bytes) {
    ++count_;
    put(elements_, static_cast<std::int32_t>(bytes.size()));
    elements_.insert(elements_.end(), bytes.begin(), bytes.end());
}

void Array::add_null() {
    ++count_;
    has_null_ = true;
    put(elements_, std::int32_t{-1});
}

base::Bytes Array::encoded() const {
    base::Bytes out;
    const bool empty = count_ == 0;
    put(out, std::int32_t{empty ? 0 : 1});  // Dimensions.
    put(out, std::int32_t{has_null_ ? 1 : 0});
    put(out, static_cast<std::uint32_t>(type_));
    if (empty) return out;
    put(out, count_);
    put(out, std::int32_t{1});  // The first index.
    out.insert(out.end(), elements_.begin(), elements_.end());
    return out;
}

RepeatedText& RepeatedText::operator=(std::string sql) {
    sql_ = std::move(sql);
    const Digest digest = sha256(view_of(sql_));
    name_ = "holdfast_" + to_hex(std::span(digest).first(12));
    return *this;
}

void Statement::bind(Type type, std::optional<base::Bytes> value) {
    types_.push_back(static_cast<Oid>(type));
    values_.push_back(std::move(value));
}

Statement& Statement::bind(std::optional<std::int64_t> number) {
    bind(Type::number, number ? std::optional(bytes_of(*number)) : std::nullopt);
    return *this;
}

Statement& Statement::bind(std::string_view text) {
    const base::ByteView view = view_of(text);
    bind(Type::text, base::Bytes(view.begin(), view.end()));
    return *this;
}

Statement& Statement::bind(const std::optional<base::ByteView>& bytes) {
    bind(Type::bytes, bytes ? std::optional(base::Bytes(bytes->begin(), bytes->end())) : std::nullopt);
    return *this;
}

Statement& Statement::bind(const std::optional<LockId>& lock_id) {
    bind(Type::uuid,
         lock_id ? std::optional(base::Bytes(lock_id->bytes().begin(), lock_id->bytes().end())) : std::nullopt);
    return *this;
}

Statement& Statement::bind(const Array& array) {
    bind(array_of(array.type()), array.encoded());
    return *this;
}

Statement& Statement::bind_null() {
    bind(Type{0}, std::nullopt);
    return *this;
}

Statement& Statement::answer_as_text() {
    as_text_ = true;
    return *this;
}

/// As libpq wants them.
struct Statement::Values {
    std::vector<const char*> data{};
    std::vector<int> sizes{};
    std::vector<int> formats{};
    [[nodiscard]] int count() const { return static_cast<int>(data.size()); }
};

Statement::Values Statement::values() const {
    // An empty vector may have no memory at all, which libpq would take for NULL.
    static constexpr char nothing = 0;
    Values all;
    for (const auto& value : values_) {
        const bool empty = value && value->empty();
        all.data.push_back(!value ? nullptr : empty ? &nothing : reinterpret_cast<const char*>(value->data()));
        all.sizes.push_back(value ? static_cast<int>(value->size()) : 0);
    }
    all.formats.assign(values_.size(), 1);
    return all;
}

bool Statement::send(pg_conn& connection) const {
    const Values all = values();
    return PQsendQueryParams(&connection, sql_.c_str(), all.count(), types_.data(), all.data.data(), all.sizes.data(),
                             all.formats.data(), as_text_ ? 0 : 1) == 1;
}

bool Statement::prepare(pg_conn& connection) const {
    return PQsendPrepare(&connection, name_.c_str(), sql_.c_str(), static_cast<int>(types_.size()), types_.data()) == 1;
}

bool Statement::send_prepared(pg_conn& connection) const {
    const Values all = values();
    return PQsendQueryPrepared(&connection, name_.c_str(), all.count(), all.data.data(), all.sizes.data(),
                               all.formats.data(), as_text_ ? 0 : 1) == 1;
}

void Rows::Clear::operator()(pg_result* result) const { PQclear(result); }

int Rows::count() const { return PQntuples(result_.get()); }

std::string_view Rows::command() const { return PQcmdStatus(result_.get()); }

bool Rows::is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }

base::ByteView Rows::bytes(int row, int column) const {
    return {reinterpret_cast<const std::uint8_t*>(PQgetvalue(result_.get(), row, column)),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::int64_t Rows::number(int row, int column) const {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes(row, column)) value = value << 8 | byte;
    return static_cast<std::int64_t>(value);
}

bool Rows::flag(int row, int column) const { return number(row, column) != 0; }

std::string_view Rows::text(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::optional<LockId> Rows::lock_id(int row, int column) const {
    const base::ByteView found = bytes(row, column);
    LockId::Bytes id{};
    if (is_null(row, column) || found.size() != id.size()) return std::nullopt;
    std::ranges::copy(found, id.begin());
    return LockId(id);
}

}  // namespace holdfast::sql::postgres
