#include "sql/mysql/sql.hpp"

#include "values/hex.hpp"

namespace holdfast::sql::mysql {

Sql Sql::written_by_user(std::string statement) {
    Sql sql;
    sql.packet_ = std::move(statement);
    return sql;
}

Sql& Sql::operator<<(Text text) {
    packet_ += text.text;
    return *this;
}

Sql& Sql::operator<<(const Sql& other) {
    packet_ += other.packet_;
    return *this;
}

Sql& Sql::operator<<(std::int64_t number) {
    packet_ += std::to_string(number);
    return *this;
}

Sql& Sql::value(std::string_view bytes) {
    return value(base::ByteView(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

Sql& Sql::value(base::ByteView bytes) {
    packet_ += "x'";
    packet_ += to_hex(bytes);
    packet_ += '\'';
    return *this;
}

}  // namespace holdfast::sql::mysql
