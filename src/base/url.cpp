#include "base/url.hpp"

#include "values/hex.hpp"

#include <algorithm>
#include <array>
#include <charconv>
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

Result<Server::Endpoint> endpoint_in(std::string_view text) {
    const auto refused = fail(Errc::usage, "the store's URL names a server as host or host:port");
    Server::Endpoint endpoint;
    std::string_view port;
    if (text.starts_with('[')) {
        const auto close = text.find(']');
        if (close == std::string_view::npos) return refused;
        endpoint.host = text.substr(1, close - 1);
        port = text.substr(close + 1);
    } else {
        const auto colon = std::min(text.find(':'), text.size());
        auto host = percent_decoded(text.substr(0, colon));
        if (!host) return std::unexpected(host.error());
        endpoint.host = std::move(*host);
        port = text.substr(colon);
    }
    if (endpoint.host.empty()) return refused;
    if (port.empty()) return endpoint;
    std::uint16_t number = 0;
    const auto read = std::from_chars(port.data() + 1, port.data() + port.size(), number);
    if (port[0] != ':' || read.ec != std::errc{} || read.ptr != port.data() + port.size() || number == 0)
        return refused;
    endpoint.port = number;
    return endpoint;
}

/// Other names are not repeated in errors: if a password has a ? that was not escaped, they could be a part of it.
bool is_parameter(std::string_view text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
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
    if (rest.starts_with("//")) {
        rest.remove_prefix(2);
        url.has_authority = !rest.starts_with("/");
    }

    const auto question = rest.find('?');
    const std::string_view query = question == std::string_view::npos ? "" : rest.substr(question + 1);
    url.written = rest.substr(0, question);
    auto place = percent_decoded(url.written);
    if (!place) return std::unexpected(place.error());
    url.place = std::move(*place);
    if (url.place.find('\0') != std::string::npos) return fail(Errc::usage, "the store's URL contains a NUL byte");

    for (std::string_view left = query; !left.empty();) {
        const std::string_view pair = left.substr(0, left.find('&'));
        left.remove_prefix(std::min(pair.size() + 1, left.size()));
        const auto equals = pair.find('=');
        if (equals == std::string_view::npos || !is_parameter(pair.substr(0, equals)))
            return fail(Errc::usage, "parameters of a store's URL are written ?name=value");
        auto value = percent_decoded(pair.substr(equals + 1));
        if (!value) return std::unexpected(value.error());
        if (!url.parameters.emplace(pair.substr(0, equals), std::move(*value)).second)
            return fail(Errc::usage, "the store's URL names a parameter twice");
    }
    return url;
}

Result<Server> Url::server() const {
    Server server;
    std::string_view rest = written;
    const auto slash = rest.find('/');
    if (slash != std::string_view::npos) {
        auto path = percent_decoded(rest.substr(slash + 1));
        if (!path) return std::unexpected(path.error());
        server.path = std::move(*path);
        rest = rest.substr(0, slash);
    }
    if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
        const std::string_view who = rest.substr(0, at);
        const auto colon = who.find(':');
        auto user = percent_decoded(who.substr(0, colon));
        if (!user) return std::unexpected(user.error());
        if (!user->empty()) server.user = std::move(*user);
        if (colon != std::string_view::npos) {
            auto password = percent_decoded(who.substr(colon + 1));
            if (!password) return std::unexpected(password.error());
            server.password = std::move(*password);
        }
        rest = rest.substr(at + 1);
    }
    while (true) {
        const std::string_view one = rest.substr(0, rest.find(','));
        auto endpoint = endpoint_in(one);
        if (!endpoint) return std::unexpected(endpoint.error());
        server.endpoints.push_back(std::move(*endpoint));
        if (one.size() == rest.size()) return server;
        rest.remove_prefix(one.size() + 1);
    }
}

std::optional<std::string> Url::take(const std::string& name) {
    auto found = parameters.extract(name);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
}

Result<bool> Url::take_switch(const std::string& name, bool fallback) {
    const auto value = take(name);
    if (!value) return fallback;
    if (*value == "on") return true;
    if (*value == "off") return false;
    return fail(Errc::usage, "the parameter " + name + " of the store's URL is on or off");
}

Result<void> Url::expect_no_parameters() const {
    if (parameters.empty()) return {};
    return fail(Errc::usage, "a " + scheme + " store has no parameter " + parameters.begin()->first);
}

std::string Url::redacted() const {
    if (!has_authority) return scheme + ":" + place;
    // The last @, also after a slash: a password with a slash that was not escaped must not be shown either.
    const auto at = written.rfind('@');
    return scheme + "://" + (at == std::string::npos ? written : written.substr(at + 1));
}

std::string without_secret(std::string_view text, std::string_view secret) {
    std::string clean(text);
    if (secret.empty()) return clean;
    constexpr std::string_view instead = "***";
    for (auto at = clean.find(secret); at != std::string::npos; at = clean.find(secret, at + instead.size()))
        clean.replace(at, secret.size(), instead);
    return clean;
}

}  // namespace holdfast::base
