#pragma once

#include "base/fd.hpp"
#include "guards/worktree/entry.hpp"
#include "guards/worktree/exclusions.hpp"
#include "holdfast/error.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// Walks a tree in the order of manifests, from one open folder to the next.
namespace holdfast::guards::worktree {

/// A folder that a walk is in. The descriptor stays open as long as this exists.
struct OpenFolder {
    base::Fd fd{};
    std::string path{};
};

struct Found {
    Entry entry{};            ///< Without hash, attributes and the target of a link: reading them is the caller's.
    std::uint64_t names = 1;  ///< Hard links.
    std::shared_ptr<const OpenFolder> folder{};  ///< In which it is; absent for the root.
    std::string name{};                          ///< In that folder.
    std::shared_ptr<const OpenFolder> opened{};  ///< Of a folder: itself.
    std::vector<std::string> left_out{};         ///< Of a folder: the names in it that the exclusion list left out.
};

struct WalkOptions {
    const Exclusions* exclusions = nullptr;  ///< Null: everything.
    std::stop_token stop{};
    /// What vanished between two looks is passed over; without this it is `consistency_unavailable`.
    bool may_move = false;
    std::string at{};  ///< The path of the root in its worktree: all paths begin with it.
};

class Walker {
public:
    /// `root` must stay open as long as the walker lives.
    Walker(int root, WalkOptions options);
    ~Walker();
    Walker(const Walker&) = delete;
    Walker& operator=(const Walker&) = delete;

    /// The next entry, the root first; absent at the end. `consistency_unavailable` if another file system is mounted
    /// in the tree: no moment is common to both.
    [[nodiscard]] Result<std::optional<Found>> next();

    /// How many subtrees the exclusion list has left out so far.
    [[nodiscard]] std::uint64_t excluded() const { return excluded_; }

private:
    /// A folder on the way from the root, and what is still to be visited in it.
    struct Level {
        std::shared_ptr<const OpenFolder> folder{};
        std::vector<std::string> names{};  ///< Sorted backwards: the next is the last.
    };
    [[nodiscard]] Result<std::optional<Found>> visit(const std::shared_ptr<const OpenFolder>& folder,
                                                     const std::string& name);
    [[nodiscard]] Result<void> enter(Found& found, base::Fd fd);
    [[nodiscard]] Result<bool> leaves_out(int folder, const std::string& path, const std::string& name,
                                          unsigned char type) const;

    int root_;
    WalkOptions options_;
    std::uint64_t device_ = 0;
    bool is_begun_ = false;
    std::vector<Level> levels_{};
    std::uint64_t excluded_ = 0;
};

/// From what the kernel tells of a thing: everything but path, target, attributes and hash.
[[nodiscard]] Entry entry_of(const struct stat& facts);

/// The target of a link, in `folder`.
[[nodiscard]] Result<std::string> target_of(int folder, const std::string& name);
/// The extended attributes of a thing, sorted: `user.*`, ACLs, and what else the kernel shows. Empty where there are
/// none.
[[nodiscard]] Result<Attributes> attributes_of(int fd, std::string_view shown);
/// The same of a thing that cannot be opened, by its place.
[[nodiscard]] Result<Attributes> attributes_at(int folder, const std::string& name, std::string_view shown);

}  // namespace holdfast::guards::worktree
