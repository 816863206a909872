#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What a snapshot leaves out: the patterns of `.holdfastignore` in the root of a worktree, and folders with a
/// CACHEDIR.TAG.
namespace holdfast::guards::worktree {

inline constexpr auto ignore_file = ".holdfastignore";
inline constexpr auto cache_tag = "CACHEDIR.TAG";

/// Patterns as in `.gitignore`: a line each, `#` for comments, `*`, `?`, `[a-z]` and `**`; a `/` at the end means
/// folders only, one before that ties a pattern to the root; `!` takes back what an earlier pattern left out. The last
/// pattern that fits decides. What is in a folder that is left out cannot be taken back.
class Exclusions {
public:
    Exclusions() = default;
    /// Refused with `config`, with the line, for a pattern that cannot be understood.
    [[nodiscard]] static Result<Exclusions> parse(std::string_view text);
    /// Of the worktree that `root` is open on. No file: nothing is left out.
    [[nodiscard]] static Result<Exclusions> of(int root);

    enum class Thing { folder, other };
    /// `path` is from the root. Asked of a folder before what is in it. The folders of restores are always left out.
    [[nodiscard]] bool leaves_out(std::string_view path, Thing thing) const;

private:
    struct Pattern {
        std::string text{};
        bool takes_back = false;
        bool folders_only = false;
        bool is_tied = false;  ///< Compared with the whole path, not with the last name alone.
    };
    std::vector<Pattern> patterns_{};
};

/// Whether `folder` says by a valid CACHEDIR.TAG that all of it can be made again.
[[nodiscard]] bool is_cache(int folder);

/// Shell patterns. `*` and `?` stop at a slash, `**` does not.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);

}  // namespace holdfast::guards::worktree
