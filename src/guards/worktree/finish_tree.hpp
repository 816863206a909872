#pragma once

#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/manifest.hpp"
#include "holdfast/error.hpp"

#include <string>

namespace holdfast::guards::worktree {

/// What a copied tree needs after all its files are there: the further names of files, and then the metadata of its
/// folders, which every new name in them would have changed. `root` is the copy; `manifest` says what it should be.
[[nodiscard]] Result<void> finish_tree(int root, int manifest_folder, const std::string& manifest_name,
                                       Attributed attributed = Attributed::always);

}  // namespace holdfast::guards::worktree
