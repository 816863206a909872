#pragma once

#include <string>
#include <vector>

namespace holdfast::guards::worktree {

/// The other processes on this host that have their working folder, an open file or a mapped file in `tree`, as far as
/// the kernel shows them to us: `1234 (vim)`. `tree` is absolute and without symbolic links.
[[nodiscard]] std::vector<std::string> users_of_tree(const std::string& tree);

}  // namespace holdfast::guards::worktree
