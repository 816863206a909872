#include "stores/http/config.hpp"

#include "base/fd.hpp"
#include "base/loopback.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::stores::http {
namespace {

constexpr std::uint16_t default_port = 7420;
constexpr std::size_t longest_token = 4096;
constexpr std::string_view white_space = " \t\r\n";

/// A header cannot carry anything else, and a line end in it would begin a header of somebody else's choice.
Result<std::string> checked(std::string token, std::string_view where) {
    for (const char c : token)
        if (c <= ' ' || c > '~')
            return fail(Errc::usage, fmt::format("the token {} has a character that no token has", where));
    if (token.size() > longest_token) return fail(Errc::usage, fmt::format("the token {} is too long", where));
    return token;
}

/// Nobody but its owner may read the file: anybody with the token has the owner's rights.
Result<std::string> read_token(const std::string& path) {
    const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return std::unexpected(base::os_error(errno, "read " + path));
    const auto facts = base::facts_of(file.get(), path);
    if (!facts) return std::unexpected(facts.error());
    if (auto ours = base::expect_our_file(*facts, path); !ours) return std::unexpected(ours.error());
    if ((facts->mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(Errc::store_unsafe, fmt::format("others can read the token in {} (mode {:04o}); take the right "
                                                    "away with chmod 600, and make a new token",
                                                    path, facts->mode & 07777));
    std::array<char, longest_token + 2> buffer{};
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0) return std::unexpected(base::os_error(errno, "read " + path));
    std::string token(buffer.data(), static_cast<std::size_t>(got));
    token.erase(token.find_last_not_of(white_space) + 1);
    token.erase(0, std::min(token.find_first_not_of(white_space), token.size()));
    if (token.empty()) return fail(Errc::usage, path + " has no token");
    return checked(std::move(token), "in " + path);
}

Result<std::string> token_of(base::Url& url, const base::Server& server) {
    const auto file = url.take("token_file");
    const std::string& in_url = server.password ? *server.password : server.user.value_or("");
    if (file && !in_url.empty())
        return fail(Errc::usage, "the store's URL has a token and names a file with one; leave out one of them");
    if (file) return read_token(*file);
    if (!in_url.empty()) return checked(in_url, "in the store's URL");
    const char* const set = std::getenv("HOLDFAST_API_TOKEN");
    return set == nullptr ? Result<std::string>() : checked(set, "in HOLDFAST_API_TOKEN");
}

/// libcurl is given the text, so nothing in it may be an end or a beginning of something else.
bool is_plain(std::string_view text) {
    constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/";
    return text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

Result<Address> Address::of(base::Url url) {
    if (!url.has_authority) return fail(Errc::usage, "a daemon is named as http://127.0.0.1:7420 or https://host:7420");
    auto server = url.server();
    if (!server) return std::unexpected(server.error());
    if (server->endpoints.size() != 1) return fail(Errc::usage, "the URL of a daemon names one host");
    const auto& [host, port] = server->endpoints.front();
    while (server->path.ends_with('/')) server->path.pop_back();
    if (!is_plain(host) || !is_plain(server->path))
        return fail(Errc::usage, "the host or the path in the daemon's URL has a character that neither can have");

    Address address;
    address.shown = url.redacted();
    address.is_loopback = base::is_loopback(host);
    const bool is_encrypted = url.scheme == "https";
    if (!is_encrypted && !address.is_loopback)
        return fail(Errc::usage,
                    "http:// sends leases and tokens unencrypted, so it is for daemons on this host; write https://");
    address.ca_file = url.take("ca").value_or("");
    if (!address.ca_file.empty() && !is_encrypted) return fail(Errc::usage, "ca says nothing without https://");
    auto token = token_of(url, *server);
    if (!token) return std::unexpected(token.error());
    address.token = std::move(*token);
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());

    const bool is_ipv6 = host.find(':') != std::string::npos;
    address.base = fmt::format("{}://{}{}{}:{}{}{}", url.scheme, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
                               port.value_or(default_port), server->path.empty() ? "" : "/", server->path);
    return address;
}

}  // namespace holdfast::stores::http
