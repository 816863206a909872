#pragma once

#include "access/network.hpp"
#include "access/token_book.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::access {

/// The parts of a request that show who sent it. A header that was sent twice has two values.
struct Shown {
    std::string address{};  ///< The other end of the connection.
    std::vector<std::string> authorization{};
    std::vector<std::string> cookie{};
    std::vector<std::string> trusted{};  ///< Values of the header that a trusted proxy sets.
};

/// Whether cookies travel encrypted.
enum class Transport { plain, tls };

/// How callers are known.
struct AuthenticatorOptions {
    std::string token_file{};           ///< Empty: everybody who can connect to the daemon is let in.
    std::string trust_header{};         ///< Names the user; empty: no proxy is trusted.
    std::vector<Network> trust_from{};  ///< Where the proxy is.
    Transport transport = Transport::plain;
};

/// Finds out who sends a request. A wrong token is refused even if the request would be accepted without it.
///
/// May be called from any thread.
class Authenticator {
public:
    /// Refused with `usage` for options that contradict each other. `clock` must outlive it.
    [[nodiscard]] static Result<std::unique_ptr<Authenticator>> create(AuthenticatorOptions options,
                                                                       const Clock& clock);

    /// Refused with `denied`.
    [[nodiscard]] Result<Identity> identify(const Shown& shown);
    /// For a connection that stays open: the caller with what it may do now, or `denied`.
    [[nodiscard]] Result<Identity> again(const Identity& caller);
    /// The user of a token, to sign in.
    [[nodiscard]] Result<Identity> by_token(std::string_view token);

    /// Rises when the rights of callers change. A token that expires does not count as a change.
    [[nodiscard]] std::uint64_t changes();

    [[nodiscard]] bool is_open() const { return !book_; }
    /// In lower case; empty if no proxy is trusted.
    [[nodiscard]] const std::string& trust_header() const { return options_.trust_header; }
    /// Why nobody is let in, for `/readyz`.
    [[nodiscard]] std::optional<Error> problem();

    /// The header `Set-Cookie` that signs a browser in or out. The cookie is the token: a daemon keeps no sessions, so
    /// that any daemon on the store knows it, and revoking the token ends it.
    [[nodiscard]] std::string sign_in_cookie(std::string_view token) const;
    [[nodiscard]] std::string sign_out_cookie() const;

private:
    Authenticator(AuthenticatorOptions options, const Clock& clock);
    [[nodiscard]] std::string_view cookie_name() const;

    AuthenticatorOptions options_;
    std::unique_ptr<TokenBook> book_;  ///< Null where everybody is let in.
};

/// Whether a browser sends what proves this caller by itself, so that a page of another origin could use it: a change
/// then needs the header `Holdfast-Csrf: 1`, which such a page cannot send.
[[nodiscard]] bool needs_csrf_header(const Identity& caller);

}  // namespace holdfast::access
