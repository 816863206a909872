#pragma once

#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/walker.hpp"
#include "holdfast/error.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast::guards::worktree {

/// One entry on its way from one tree into another.
struct Item {
    Entry entry{};
    std::shared_ptr<const OpenFolder> from{};  ///< The folder that it is in; absent for the root.
    std::shared_ptr<const OpenFolder> to{};    ///< The folder that it goes into; absent for the root.
    std::string name{};                        ///< In both.
    std::optional<Entry> base{};               ///< The same path in the tree that unchanged files are linked from.
    std::shared_ptr<const OpenFolder> base_folder{};  ///< The folder in that tree.
    bool is_gone = false;                             ///< It vanished, and may: nothing is handed on.
};

/// Produces items in their order, works on them in several threads, and hands them on in their order. Holds only so
/// many at a time, so memory and open folders do not grow with the tree.
struct InOrder {
    unsigned threads = 1;
    CopyFacts* facts = nullptr;
    std::stop_token stop{};  ///< Of the caller. The first error stops the others, too.
    /// The next; absent at the end. On the caller's thread.
    std::function<Result<std::optional<Item>>()> next;
    /// In any of the threads, on several items at once.
    std::function<Result<void>(Item&, FileCopier&)> work;
    /// On the caller's thread.
    std::function<Result<void>(const Item&)> done;
};

[[nodiscard]] Result<void> run_in_order(const InOrder& job);

/// As many threads as help to copy files.
[[nodiscard]] unsigned copying_threads();

}  // namespace holdfast::guards::worktree
