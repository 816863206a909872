#pragma once

#include "access/token_file.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::access {

/// The token file as a daemon knows it. Read again when it changes; nobody is let in while it cannot be read.
///
/// May be called from any thread.
class TokenBook {
public:
    /// `clock` must outlive this.
    TokenBook(std::string path, const Clock& clock) : path_(std::move(path)), clock_(&clock) {}

    /// The user who shows `token`. Refused with `denied`, in the same words whatever is wrong with the token.
    [[nodiscard]] Result<Identity> by_token(std::string_view token);
    /// The user whom a trusted proxy names.
    [[nodiscard]] Result<Identity> by_user(std::string_view user);
    /// A caller that was let in before, with what it may do now. Refused with `denied` if it would not be let in any
    /// more.
    [[nodiscard]] Result<Identity> again(const Identity& caller);

    /// Rises when the file has given other rights than before.
    [[nodiscard]] std::uint64_t changes();

    /// Why nobody is let in.
    [[nodiscard]] std::optional<Error> problem();

private:
    void read_if_changed();

    const std::string path_;
    const Clock* clock_;
    /// Guards everything below.
    std::mutex mutex_;
    std::vector<TokenEntry> entries_{};
    std::optional<base::FileVersion> version_{};  ///< Of `entries_`.
    bool may_change_unseen_ = true;  ///< The file had just been written when it was read, so the next change
                                     ///< may leave its version as it is.
    std::optional<Error> problem_{};
    std::uint64_t changes_ = 0;
};

}  // namespace holdfast::access
