#include "stores/mysql/sql.hpp"

#include "values/hex.hpp"

namespace holdfast::stores::mysql {

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

}  // namespace holdfast::stores::mysql
