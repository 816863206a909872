#include "stores/etcd/config.hpp"

#include "base/loopback.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

constexpr std::uint16_t default_port = 2379;
constexpr std::string_view default_prefix = "holdfast";
/// A larger margin would block the lock of a dead holder for too long.
constexpr std::chrono::milliseconds largest_margin{std::chrono::hours{1}};

Result<bool> take_tls(base::Url& url, const std::vector<base::Server::Endpoint>& endpoints) {
    const auto asked = url.take("tls");
    if (!asked) return !std::ranges::all_of(endpoints, base::is_loopback, &base::Server::Endpoint::host);
    if (*asked == "verify") return true;
    if (*asked == "off") return false;
    return fail(Errc::usage, "the parameter tls of the store's URL is verify or off");
}

Result<std::string> prefix_of(std::string path) {
    while (path.ends_with('/')) path.pop_back();
    if (path.empty()) return std::string(default_prefix);
    if (has_control(path)) return fail(Errc::usage, "the prefix in the store's URL contains a control character");
    return path;
}

}  // namespace

Result<Address> Address::of(base::Url url) {
    auto server = url.server();
    if (!server) return std::unexpected(server.error());
    Address address;
    address.shown = url.redacted();
    address.user = server->user.value_or("");
    address.password = server->password.value_or("");

    const auto tls = take_tls(url, server->endpoints);
    if (!tls) return std::unexpected(tls.error());
    address.ca_file = url.take("tls_ca").value_or("");
    if (!address.ca_file.empty() && !*tls) return fail(Errc::usage, "tls_ca says nothing while tls is off");
    if (const auto text = url.take("clock_margin")) {
        const auto margin = parse_duration(*text);
        if (!margin) return std::unexpected(margin.error());
        if (*margin > largest_margin) return fail(Errc::usage, "clock_margin is at most 1h");
        address.margin = *margin;
    }
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());

    auto prefix = prefix_of(std::move(server->path));
    if (!prefix) return std::unexpected(prefix.error());
    address.prefix = std::move(*prefix);
    for (const auto& [host, port] : server->endpoints) {
        const bool is_ipv6 = host.find(':') != std::string::npos;
        std::string name =
            fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port.value_or(default_port));
        std::string where = fmt::format("{}://{}", *tls ? "https" : "http", name);
        address.endpoints.push_back({std::move(name), std::move(where)});
    }
    return address;
}

}  // namespace holdfast::stores::etcd
