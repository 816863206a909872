#include "access/authenticator.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace holdfast::access {
namespace {

/// A browser forgets the cookie after this time.
constexpr std::chrono::hours signed_in{12};

bool same_letters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

/// Absent for what is not base64.
std::optional<std::string> from_base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while (text.ends_with('=')) text.remove_suffix(1);
    std::string bytes;
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const char digit : text) {
        const auto value = digits.find(digit);
        if (value == std::string_view::npos) return std::nullopt;
        bits = (bits << 6U) | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>((bits >> count) & 0xffU);
    }
    return bytes;
}

/// The token in `Bearer TOKEN`, or in the password of `Basic`.
std::optional<std::string> token_in(std::string_view header) {
    header = trimmed(header);
    const auto blank = header.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    const std::string_view scheme = header.substr(0, blank);
    const std::string_view rest = trimmed(header.substr(blank));
    if (same_letters(scheme, "bearer")) return std::string(rest);
    if (!same_letters(scheme, "basic")) return std::nullopt;
    const auto pair = from_base64(rest);
    if (!pair) return std::nullopt;
    const auto colon = pair->find(':');
    if (colon == std::string::npos) return std::nullopt;
    return pair->substr(colon + 1);
}

/// The different values that a cookie has.
std::vector<std::string> cookies_named(std::string_view name, const std::vector<std::string>& headers) {
    std::vector<std::string> values;
    for (std::string_view rest : headers) {
        while (!rest.empty()) {
            const std::string_view pair = trimmed(rest.substr(0, rest.find(';')));
            rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
            const auto equals = pair.find('=');
            if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
            std::string value(pair.substr(equals + 1));
            if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
        }
    }
    return values;
}

/// The characters that RFC 9110 allows in the name of a header.
bool is_header_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
}

std::unexpected<Error> not_shown() {
    return fail(Errc::denied, "this daemon wants to know who you are: send an API token, or sign in");
}

}  // namespace

Result<std::unique_ptr<Authenticator>> Authenticator::create(AuthenticatorOptions options, const Clock& clock) {
    constexpr std::array taken{"authorization", "cookie", "host", "origin", "content-length", "holdfast-csrf"};
    const std::string& header = options.trust_header;
    if (header.empty() != options.trust_from.empty())
        return fail(Errc::usage, "--trust-header and --trust-from belong together: which header, and whose");
    if (!header.empty() && options.token_file.empty())
        return fail(Errc::usage, "--trust-header needs a --token-file, which says what the users may do");
    const bool is_taken = std::ranges::any_of(taken, [&](const char* name) { return same_letters(header, name); });
    if (!header.empty() && (!is_header_name(header) || is_taken))
        return fail(Errc::usage, fmt::format("{} cannot be the header of a proxy", printable(header)));
    return std::unique_ptr<Authenticator>(new Authenticator(std::move(options), clock));
}

Authenticator::Authenticator(AuthenticatorOptions options, const Clock& clock) : options_(std::move(options)) {
    for (char& c : options_.trust_header) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!options_.token_file.empty()) book_ = std::make_unique<TokenBook>(options_.token_file, clock);
}

Result<Identity> Authenticator::identify(const Shown& shown) {
    if (!book_) return Identity::open(shown.address);
    auto identity = [&]() -> Result<Identity> {
        if (!shown.authorization.empty()) {
            const auto token = shown.authorization.size() == 1 ? token_in(shown.authorization.front()) : std::nullopt;
            return book_->by_token(token.value_or(""));
        }
        if (const auto cookies = cookies_named(cookie_name(), shown.cookie); !cookies.empty()) {
            // Another host of the same domain can add a cookie of this name, but not remove the right one.
            auto signed_in_as = book_->by_token(cookies.size() == 1 ? cookies.front() : "");
            if (signed_in_as) signed_in_as->auth = Auth::cookie;
            return signed_in_as;
        }
        const bool is_proxy = std::ranges::any_of(
            options_.trust_from, [&](const Network& network) { return network.contains(shown.address); });
        if (!is_proxy || shown.trusted.empty()) return not_shown();
        // Of two values, one may be what the client wrote and the proxy passed on.
        if (shown.trusted.size() != 1) return fail(Errc::denied, "the proxy named two users");
        const std::string_view user = shown.trusted.front();
        if (!is_utf8(user) || has_control(user)) return fail(Errc::denied, "the proxy's user has no rights here");
        return book_->by_user(user);
    }();
    if (identity) identity->address = shown.address;
    return identity;
}

Result<Identity> Authenticator::again(const Identity& caller) {
    if (book_) return book_->again(caller);
    return caller;
}

Result<Identity> Authenticator::by_token(std::string_view token) {
    if (book_) return book_->by_token(token);
    return fail(Errc::usage, "this daemon has no API tokens: nobody needs to sign in");
}

std::uint64_t Authenticator::changes() { return book_ ? book_->changes() : 0; }

std::optional<Error> Authenticator::problem() { return book_ ? book_->problem() : std::nullopt; }

std::string_view Authenticator::cookie_name() const {
    // A browser accepts a cookie whose name begins with `__Host-` only from this very host, and only over TLS.
    return options_.transport == Transport::tls ? "__Host-holdfast" : "holdfast_session";
}

std::string Authenticator::sign_in_cookie(std::string_view token) const {
    return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", cookie_name(), token,
                       std::chrono::seconds(signed_in).count(), options_.transport == Transport::tls ? "; Secure" : "");
}

std::string Authenticator::sign_out_cookie() const {
    return fmt::format("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", cookie_name(),
                       options_.transport == Transport::tls ? "; Secure" : "");
}

bool needs_csrf_header(const Identity& caller) { return caller.auth == Auth::cookie || caller.auth == Auth::proxy; }

}  // namespace holdfast::access
