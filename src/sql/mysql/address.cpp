#include "sql/mysql/address.hpp"

#include "base/loopback.hpp"

#include <algorithm>

namespace holdfast::sql::mysql {
namespace {

constexpr std::uint16_t default_port = 3306;

Result<Tls> tls_of(base::Url& url, const Address& address) {
    const auto value = url.take("tls");
    if (!value) return address.is_private() ? Tls::off : Tls::verify;
    if (*value == "verify") return Tls::verify;
    if (*value == "off") return Tls::off;
    return fail(Errc::usage, "the parameter tls of the store's URL is verify or off");
}

}  // namespace

Result<Address> Address::of(base::Url& url) {
    auto server = url.server();
    if (!server) return std::unexpected(server.error());
    Address address;
    address.shown = url.redacted();
    for (auto& endpoint : server->endpoints)
        address.endpoints.push_back({std::move(endpoint.host), endpoint.port.value_or(default_port)});
    address.user = server->user.value_or("");
    address.password = server->password.value_or("");
    address.database = std::move(server->path);
    if (address.user.empty() || address.database.empty() || address.database.find('/') != std::string::npos)
        return fail(Errc::usage, "a MySQL store is written mysql://user:password@host:port/database");
    address.socket = url.take("socket").value_or("");
    address.tls_ca = url.take("tls_ca").value_or("");
    // A wish for a certificate is a wish for TLS, wherever the server is.
    if (!address.tls_ca.empty() && !url.parameters.contains("tls")) {
        address.tls = Tls::verify;
        return address;
    }
    const auto tls = tls_of(url, address);
    if (!tls) return std::unexpected(tls.error());
    address.tls = *tls;
    return address;
}

bool Address::is_private() const {
    return !socket.empty() || std::ranges::all_of(endpoints, base::is_loopback, &Endpoint::host);
}

}  // namespace holdfast::sql::mysql
