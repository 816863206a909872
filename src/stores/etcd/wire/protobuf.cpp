#include "stores/etcd/wire/protobuf.hpp"

namespace holdfast::stores::etcd {
namespace {

/// How a field is written, in the last three bits before it.
enum Kind : std::uint8_t { varint = 0, fixed_64 = 1, sized = 2, fixed_32 = 5 };

constexpr unsigned kind_bits = 3;

/// Seven bits a byte, the last ones first; all but the last byte have the eighth set.
void append_varint(std::string& out, std::uint64_t value) {
    for (; value > 0x7fU; value >>= 7U) out += static_cast<char>(value | 0x80U);
    out += static_cast<char>(value);
}

}  // namespace

void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
    append_varint(out, std::uint64_t{field} << kind_bits | varint);
    append_varint(out, value);
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
    append_varint(out, std::uint64_t{field} << kind_bits | sized);
    append_varint(out, bytes.size());
    out += bytes;
}

std::optional<Field> Fields::next() {
    if (rest_.empty() || !ok_) return std::nullopt;
    const auto key = number();
    if (!key) return std::nullopt;
    Field field{.number = static_cast<std::uint32_t>(*key >> kind_bits)};
    switch (*key & ((1U << kind_bits) - 1)) {
        case varint: {
            const auto value = number();
            if (!value) return std::nullopt;
            field.value = *value;
            return field;
        }
        case sized: {
            const auto size = number();
            const auto content = size ? bytes(*size) : std::nullopt;
            if (!content) return std::nullopt;
            field.bytes = *content;
            return field;
        }
        // No field that we read has one of these types.
        case fixed_64: return bytes(8) ? std::optional(field) : std::nullopt;
        case fixed_32: return bytes(4) ? std::optional(field) : std::nullopt;
        default: ok_ = false; return std::nullopt;
    }
}

std::optional<std::uint64_t> Fields::number() {
    constexpr unsigned most_bits = 64;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < most_bits && !rest_.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte <= 0x7fU) return value;
    }
    ok_ = false;
    return std::nullopt;
}

std::optional<std::string_view> Fields::bytes(std::uint64_t size) {
    if (size > rest_.size()) {
        ok_ = false;
        return std::nullopt;
    }
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
}

}  // namespace holdfast::stores::etcd
