#pragma once

#include "cli/context.hpp"
#include "guards/worktree/diff.hpp"
#include "guards/worktree/repository.hpp"

#include <string>

/// What the commands `holdfast worktree …` share.
namespace holdfast::cli {

namespace trees = guards::worktree;

namespace opt {
inline constexpr Option worktree{{"worktree", Takes::one, "", "", From::environment},
                                 '\0',
                                 "NAME",
                                 "Which worktree; by default the one that the working folder is in, else the first."};
}  // namespace opt

/// The repository that the working folder is in.
[[nodiscard]] Result<trees::Repository> repository_of(const Context& context);
/// --worktree, or the one that the working folder is in, or the first.
[[nodiscard]] Result<trees::WorktreeRow> worktree_of(const Context& context, const trees::Repository& repository);
/// The store of a repository's locks.
[[nodiscard]] Result<Store*> lock_store_of(Context& context, const trees::Repository& repository);

/// `main`, and for a shared worktree what that means.
[[nodiscard]] std::string shown(const trees::WorktreeRow& row);
/// Where its folder is.
[[nodiscard]] std::string path_of(const trees::Repository& repository, const std::string& worktree_id);
/// One line of a comparison: `M etc/site.conf`.
[[nodiscard]] std::string line_of(const trees::Difference& difference);
/// How a worktree's mode is shown in tables.
[[nodiscard]] std::string mode_words(bool is_shared);

}  // namespace holdfast::cli
