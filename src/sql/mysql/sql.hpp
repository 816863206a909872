#pragma once

#include "base/frame.hpp"
#include "holdfast/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sql::mysql {

/// Statements that travel to the server together.
///
/// Only three things can get into one: text that the compiler has seen, numbers, and bytes as hexadecimal
/// literals. So no name and no value can be taken for SQL, whatever it contains. The exception has a name of its own:
/// a guard runs statements that its user wrote, `written_by_user`.
class Sql {
public:
    /// A constant of the program. Making one from text of the run time does not compile.
    struct Text {
        // NOLINTNEXTLINE(google-explicit-constructor)
        consteval Text(const char* constant) : text(constant) {}
        // NOLINTNEXTLINE(google-explicit-constructor)
        consteval Text(std::string_view constant) : text(constant) {}
        std::string_view text;
    };

    Sql() = default;
    explicit Sql(Text text) : packet_(text.text) {}
    /// The user's own statement, as it is. Never a name or a value.
    [[nodiscard]] static Sql written_by_user(std::string statement);

    Sql& operator<<(Text text);
    Sql& operator<<(const Sql& other);
    Sql& operator<<(std::int64_t number);
    Sql& operator<<(std::uint64_t number) { return *this << static_cast<std::int64_t>(number); }
    Sql& operator<<(Instant instant) { return *this << std::int64_t{instant.time_since_epoch().count()}; }
    /// As a hexadecimal literal.
    Sql& value(std::string_view bytes);
    Sql& value(base::ByteView bytes);
    Sql& null() { return *this << "NULL"; }

    [[nodiscard]] const std::string& packet() const { return packet_; }
    [[nodiscard]] bool empty() const { return packet_.empty(); }

private:
    std::string packet_{};
};

/// Goes before every element of a list but the first.
class Comma {
public:
    [[nodiscard]] Sql::Text next() {
        const bool first = first_;
        first_ = false;
        return first ? Sql::Text("") : Sql::Text(", ");
    }

private:
    bool first_ = true;
};

}  // namespace holdfast::sql::mysql
