#pragma once

#include "access/grant.hpp"
#include "base/private_file.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"
#include "json/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::access {

/// One line of the token file: what a user may do who shows a token, or whom a trusted proxy names.
struct TokenEntry {
    std::string id{};  ///< Public: 12 hexadecimal digits.
    std::string user{};
    std::vector<Grant> grants{};
    /// SHA-256 of the whole token. Absent for a user that only a proxy can name. A slow hash, or salt, would protect
    /// nothing: a token has 256 random bits, so that it cannot be guessed from its hash.
    std::optional<KeyHash> hash{};
    Instant created_at{};
    std::optional<Instant> expires_at{};

    [[nodiscard]] bool is_valid_at(Instant now) const { return !expires_at || now < *expires_at; }
    [[nodiscard]] bool operator==(const TokenEntry&) const = default;
};

/// A user that stands for everybody whom a proxy names and who has no entry.
inline constexpr std::string_view any_user = "*";

/// An API token, as it is shown once: `hft_<id>_<64 hexadecimal digits>`. It proves who calls the daemon, and has
/// nothing to do with a fencing token.
struct ApiToken {
    std::string id{};
    std::string text{};  ///< Secret.

    [[nodiscard]] static ApiToken random();
    /// Absent if `text` cannot be one.
    [[nodiscard]] static std::optional<ApiToken> parse(std::string_view text);
    [[nodiscard]] KeyHash hash() const;
};

struct ReadTokens {
    std::vector<TokenEntry> entries{};
    base::FileVersion version{};
};

/// The content of the file, whole or not at all. Refused with `usage`, `config` or `format_unsupported`.
[[nodiscard]] Result<std::vector<TokenEntry>> parse_tokens(std::string_view text);
[[nodiscard]] std::string text_of_tokens(const std::vector<TokenEntry>& entries);

/// Reads the whole file, or nothing of it. Refused with `store_unavailable` if there is none, `store_unsafe` if
/// somebody else could have written it, and `config` if it is damaged.
[[nodiscard]] Result<ReadTokens> read_tokens(const std::string& path);

/// What a new entry says.
struct NewToken {
    std::string user{};
    std::vector<Grant> grants{};
    std::optional<std::chrono::milliseconds> lasts{};
    bool by_proxy = false;  ///< For a user whom a proxy names: no token is made.
};

struct CreatedToken {
    TokenEntry entry{};
    std::string token{};  ///< Secret; empty with `by_proxy`. It is known to nobody but the caller.
};

/// Adds an entry; makes the file if it is missing. Two at once both count. Refused with `usage` for a user or a time
/// that cannot be, and as `read_tokens` is.
[[nodiscard]] Result<CreatedToken> create_token(const std::string& path, const NewToken& wanted, const Clock& clock,
                                                Deadline deadline);

/// Removes the entry with this id. Refused with `usage` if there is none.
[[nodiscard]] Result<TokenEntry> revoke_token(const std::string& path, std::string_view id, const Clock& clock,
                                              Deadline deadline);

/// `{"id","user","grants":[…],"by_proxy","created_at","expires_at"}`, without a secret.
[[nodiscard]] json::Object token_document(const TokenEntry& entry);

}  // namespace holdfast::access
