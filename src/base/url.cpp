#include "base/url.hpp"

#include "values/hex.hpp"

#include <array>
#include <cstdint>

namespace holdfast::base {
namespace {

Result<std::string> percent_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        std::array<std::uint8_t, 1> byte{};
        if (!from_hex(text.substr(i + 1, 2), byte)) return fail(Errc::usage, "the store's URL has a broken %-escape");
        decoded += static_cast<char>(byte[0]);
        i += 2;
    }
    return decoded;
}

bool is_scheme(std::string_view text) {
    if (text.empty()) return false;
    for (const char c : text)
        if (c < 'a' || c > 'z') return false;
    return true;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon)))
        return fail(Errc::usage, "a store is named by a URL such as sqlite:locks.db or file:/var/lib/locks");
    Url url;
    url.scheme = text.substr(0, colon);
    std::string_view rest = text.substr(colon + 1);
    if (rest.starts_with("//")) rest.remove_prefix(2);

    const auto question = rest.find('?');
    const std::string_view query = question == std::string_view::npos ? "" : rest.substr(question + 1);
    auto place = percent_decoded(rest.substr(0, question));
    if (!place) return std::unexpected(place.error());
    url.place = std::move(*place);
    if (url.place.find('\0') != std::string::npos) return fail(Errc::usage, "the store's URL contains a NUL byte");

    for (std::string_view left = query; !left.empty();) {
        const std::string_view pair = left.substr(0, left.find('&'));
        left.remove_prefix(std::min(pair.size() + 1, left.size()));
        const auto equals = pair.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return fail(Errc::usage, "parameters of a store's URL are written ?name=value");
        auto value = percent_decoded(pair.substr(equals + 1));
        if (!value) return std::unexpected(value.error());
        if (!url.parameters.emplace(pair.substr(0, equals), std::move(*value)).second)
            return fail(Errc::usage, "the store's URL names a parameter twice");
    }
    return url;
}

Result<bool> Url::take_switch(const std::string& name, bool fallback) {
    const auto found = parameters.extract(name);
    if (found.empty()) return fallback;
    if (found.mapped() == "on") return true;
    if (found.mapped() == "off") return false;
    return fail(Errc::usage, "the parameter " + name + " of the store's URL is on or off");
}

Result<void> Url::expect_no_parameters() const {
    if (parameters.empty()) return {};
    return fail(Errc::usage, "a " + scheme + " store has no parameter " + parameters.begin()->first);
}

std::string Url::redacted() const {
    const auto at = place.rfind('@');
    return scheme + ":" + (at == std::string::npos ? place : "//" + place.substr(at + 1));
}

}  // namespace holdfast::base
