#include "cli/process_list.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace holdfast::cli {
namespace {

constexpr char instead = 'x';

void overwrite(std::span<char> secret) { std::ranges::fill(secret, instead); }

/// `scheme://user:password@host`, also behind `--store=`; a daemon's token may stand there without a colon.
void hide_password(std::span<char> argument) {
    const std::string_view text(argument.data(), argument.size());
    const auto begin = text.find("://");
    if (begin == std::string_view::npos) return;
    // The last @: one that should have been escaped belongs to the password.
    const auto at = text.rfind('@');
    if (at == std::string_view::npos || at < begin + 3) return;
    const std::string_view scheme = text.substr(0, begin);
    const bool is_daemon = scheme.ends_with("http") || scheme.ends_with("https");
    const auto secret = is_daemon ? begin + 3 : text.find(':', begin + 3) + 1;
    if (secret != 0 && secret < at) overwrite(argument.subspan(secret, at - secret));
}

/// `?password=…`, and parameters whose names end like that.
void hide_parameters(std::span<char> argument) {
    constexpr std::string_view name = "password=";
    const std::string_view text(argument.data(), argument.size());
    for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + name.size())) {
        const auto value = at + name.size();
        overwrite(argument.subspan(value, std::min(text.find('&', value), text.size()) - value));
    }
}

/// `<lock_id>.<lease_key>`, also behind `--lease=`. Anything that ends like one: a slip in the rest is no reason to
/// show the key.
void hide_lease_key(std::span<char> argument) {
    constexpr std::size_t key_size = 32;
    const std::string_view text(argument.data(), argument.size());
    const auto dot = text.rfind('.');
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (dot == std::string_view::npos || text.size() - dot - 1 < key_size) return;
    if (std::ranges::all_of(text.substr(dot + 1, key_size), is_hex)) overwrite(argument.subspan(dot + 1));
}

}  // namespace

void hide_secrets(std::span<char* const> arguments) {
    for (char* const text : arguments) {
        const std::span argument(text, std::strlen(text));
        hide_password(argument);
        hide_parameters(argument);
        hide_lease_key(argument);
    }
}

}  // namespace holdfast::cli
