#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The wire format of Protocol Buffers, as far as etcd's messages need it. A message is a list of numbered fields, and
/// a field with its default value is mostly left out.
namespace holdfast::stores::etcd {

/// Writes the field also if it is 0.
void append_number(std::string& out, std::uint32_t field, std::uint64_t value);
/// Also for a message, given as its bytes.
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

/// One field. A field of an unexpected type reads as its default.
struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;   ///< Of a number.
    std::string_view bytes{};  ///< Of a text or a message: a part of the bytes that are read.
};

/// Reads a message field by field, without taking anything in it for granted.
class Fields {
public:
    explicit Fields(std::string_view message) : rest_(message) {}

    /// Absent at the end, and where the message cannot be read any further.
    [[nodiscard]] std::optional<Field> next();
    /// False if reading stopped before the end.
    [[nodiscard]] bool ok() const { return ok_; }

private:
    [[nodiscard]] std::optional<std::uint64_t> number();
    [[nodiscard]] std::optional<std::string_view> bytes(std::uint64_t size);

    std::string_view rest_;
    bool ok_ = true;
};

}  // namespace holdfast::stores::etcd
