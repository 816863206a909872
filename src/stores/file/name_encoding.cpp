#include "stores/file/name_encoding.hpp"

#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace holdfast::stores::file {
namespace {

constexpr std::string_view readable = "n.";
constexpr std::string_view hashed = "h.";

/// Below the 255 bytes of most file systems, with room for those that add something of their own.
constexpr std::size_t longest = 200;

bool stays(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

std::string percent_encoded(std::string_view text) {
    std::string encoded;
    for (const char c : text) {
        if (stays(c)) {
            encoded += c;
            continue;
        }
        const std::array<std::uint8_t, 1> byte{static_cast<std::uint8_t>(c)};
        encoded += '%' + to_hex(byte);
    }
    return encoded;
}

}  // namespace

std::string folder_name(const LockName& name) {
    std::string encoded = std::string(readable) + percent_encoded(name.text());
    if (encoded.size() <= longest) return encoded;
    const std::string& text = name.text();
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return std::string(hashed) + to_hex(sha256(bytes));
}

std::optional<std::string> name_in(std::string_view folder) {
    if (!folder.starts_with(readable)) return std::nullopt;
    std::string name;
    for (std::string_view rest = folder.substr(readable.size()); !rest.empty();) {
        std::array<std::uint8_t, 1> byte{static_cast<std::uint8_t>(rest.front())};
        const std::size_t length = stays(rest.front()) ? 1 : 3;
        if (length > 1 && (rest.front() != '%' || rest.size() < length || !from_hex(rest.substr(1, 2), byte)))
            return std::nullopt;
        name += static_cast<char>(byte[0]);
        rest.remove_prefix(length);
    }
    return name;
}

bool is_folder_name(std::string_view folder) { return folder.starts_with(readable) || folder.starts_with(hashed); }

}  // namespace holdfast::stores::file
