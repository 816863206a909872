#include "stores/redis/config.hpp"

#include "base/loopback.hpp"

#include <algorithm>

namespace holdfast::stores::redis {
namespace {

constexpr std::size_t longest_prefix = 64;

/// Braces would change which part of a key Redis Cluster hashes; blanks and quotes would confuse people.
bool is_prefix(std::string_view text) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-.:/").find(c) != std::string_view::npos;
    };
    return !text.empty() && text.size() <= longest_prefix && std::ranges::all_of(text, fits);
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<void> take_tls(base::Url& url, Address& address) {
    const auto mode = url.take("tls");
    const auto file = url.take("tls_ca");
    if (url.scheme != "rediss") {
        if (mode || file) return fail(Errc::usage, "TLS is spoken to rediss://, not to redis://");
        return {};
    }
    if (mode && *mode != "verify" && *mode != "off")
        return fail(Errc::usage, "the parameter tls of a rediss store is verify or off");
    address.tls = mode == "off" ? Tls::unverified : Tls::verified;
    if (file && address.tls == Tls::unverified)
        return fail(Errc::usage, "with tls=off nothing is verified, so tls_ca says nothing");
    address.tls_ca = file.value_or("");
    return {};
}

}  // namespace

Result<Address> Address::of(base::Url& url) {
    if (!url.has_authority) return fail(Errc::usage, "a Redis store is written redis://host:port/0");
    auto server = url.server();
    if (!server) return std::unexpected(server.error());
    if (server->endpoints.size() != 1) return fail(Errc::usage, "a Redis store is one server");
    Address address;
    address.host = server->endpoints.front().host;
    address.port = server->endpoints.front().port.value_or(address.port);
    address.user = server->user;
    address.password = server->password;
    if (address.user && !address.password)
        return fail(Errc::usage, "a user of a Redis store needs a password: redis://user:password@host");
    if (!server->path.empty()) address.database = server->path;
    if (!is_number(address.database)) return fail(Errc::usage, "the database of a Redis store is a number");
    if (auto prefix = url.take("prefix")) address.prefix = std::move(*prefix);
    if (!is_prefix(address.prefix))
        return fail(Errc::usage, "the prefix of a Redis store is 1 to 64 letters, digits and _ - . : /");
    if (auto tls = take_tls(url, address); !tls) return std::unexpected(tls.error());
    return address;
}

std::string Address::place() const {
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Address::is_loopback() const { return base::is_loopback(host); }

}  // namespace holdfast::stores::redis
