#include "server/origin.hpp"

#include "base/loopback.hpp"

#include <algorithm>

namespace holdfast::server {
namespace {

HttpReply refusal(std::string message, int status) { return reply_with({Errc::denied, std::move(message)}, status); }

bool is_our_name(std::string_view host, const ServeOptions& options) {
    if (std::ranges::find(options.hosts, host) != options.hosts.end()) return true;
    // A name that an attacker's DNS points at the loopback is not one of these.
    if (base::is_loopback(host_of(options.listen))) return base::is_loopback(host);
    // Elsewhere every request proves who sends it, so any name will do unless some are listed.
    return options.hosts.empty();
}

}  // namespace

std::string_view host_of(std::string_view address) {
    if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
    return address.substr(0, address.rfind(':'));
}

std::optional<HttpReply> refused_origin(const HttpRequest& request, const ServeOptions& options) {
    const auto host = request.header("host");
    if (!host || host->empty()) return reply_with({Errc::usage, "the header Host is missing"}, 400);
    if (!is_our_name(host_of(*host), options))
        return refusal("this daemon is not called by that name; add it with --host if it is", 421);
    if (const auto origin = request.header("origin")) {
        const std::string own = (request.is_tls ? "https://" : "http://") + std::string(*host);
        // A proxy in front of the daemon may speak TLS where the daemon does not.
        const bool is_own = *origin == own || *origin == "https://" + std::string(*host);
        if (!is_own) return refusal("pages of other origins may not call this daemon", 403);
    }
    const std::string_view site = request.header("sec-fetch-site").value_or("none");
    const bool tells_of_locks = request.path.starts_with("/v1/") || request.path == "/metrics";
    if (tells_of_locks && site != "none" && site != "same-origin")
        return refusal("pages of other origins may not call this daemon", 403);
    return std::nullopt;
}

}  // namespace holdfast::server
