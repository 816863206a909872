#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How etcd's messages travel: the wire format of Protocol Buffers, as far as they need it. A message is a list of
/// numbered fields, and a field with its default value is mostly left out.
namespace holdfast::stores::etcd {

/// Writes it also if it is 0.
void append_number(std::string& out, std::uint32_t field, std::uint64_t value);
/// Also of a message, by what it consists of.
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

/// One field. What is of another kind than expected reads as its default.
struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;   ///< Of a number.
    std::string_view bytes{};  ///< Of a text or a message. Within what is read.
};

/// Reads a message field by field, without taking anything in it for granted.
class Fields {
public:
    explicit Fields(std::string_view message) : rest_(message) {}

    /// Absent at the end, and where the message cannot be read any further.
    [[nodiscard]] std::optional<Field> next();
    /// False if that was before its end.
    [[nodiscard]] bool ok() const { return ok_; }

private:
    [[nodiscard]] std::optional<std::uint64_t> number();
    [[nodiscard]] std::optional<std::string_view> bytes(std::uint64_t size);

    std::string_view rest_;
    bool ok_ = true;
};

}  // namespace holdfast::stores::etcd
