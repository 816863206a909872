#pragma once

#include "guards/worktree/doctor.hpp"
#include "guards/worktree/restore.hpp"
#include "guards/worktree/snapshot_fixture.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/stat.h>

namespace holdfast::guards::worktree {

/// Path and content of everything in a folder.
inline std::map<std::string, std::string> tree_in(const std::filesystem::path& root) {
    std::map<std::string, std::string> tree;
    for (const auto& each : std::filesystem::recursive_directory_iterator(root)) {
        const std::string path = each.path().lexically_relative(root).string();
        if (each.is_symlink())
            tree[path] = "-> " + std::filesystem::read_symlink(each.path()).string();
        else if (each.is_directory())
            tree[path] = "/";
        else {
            std::ifstream file(each.path(), std::ios::binary);
            tree[path] = {std::istreambuf_iterator<char>(file), {}};
        }
    }
    return tree;
}

inline std::uint64_t inode_of(const std::filesystem::path& path) {
    struct stat facts{};
    return lstat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

/// A worktree `main` with a snapshot of it, and a lease on it.
class Restoring : public SnapshotFixture {
protected:
    Restoring() : mine_(take_over("me")) {
        write(in("main", "a/one"), "1");
        write(in("main", "a/two"), "2");
        write(in("main", "b/three"), "3");
        std::filesystem::create_symlink("a/one", in("main", "link"));
        std::filesystem::create_hard_link(in("main", "a/one"), in("main", "z"));
        std::filesystem::permissions(in("main", "a/two"), std::filesystem::perms::owner_read);
        first_ = take();
    }

    json::SnapshotDescriptor take() {
        clock_.advance(std::chrono::milliseconds{1});
        const auto taken = snapshot("main", under(mine_));
        EXPECT_TRUE(taken) << taken.error().message;
        return taken->descriptor;
    }
    [[nodiscard]] RestoreOrder order(const std::string& to = "main", const std::string& path = "") const {
        RestoreOrder order;
        order.snapshot = first_;
        order.worktree_id = to;
        order.path = path;
        order.actor = "me";
        return order;
    }
    /// With the way back, and a lease that is checked as the command does it.
    InPlaceTerms terms() {
        InPlaceTerms terms;
        terms.holder_id = "me";
        terms.token = mine_.token.value;
        terms.lock_id = mine_.lock_id.text();
        terms.undo_id = take().snapshot_id;
        terms.check = [this](const Guard& guard) {
            return expect_current(guard, repository_, *find_row(*repository_.registry(), "main"), mine_, *store_,
                                  soon());
        };
        return terms;
    }
    Result<InPlaceRestored> in_place(const std::string& path = "") {
        const auto how = terms();
        return restore_in_place(repository_, order("main", path), how);
    }
    [[nodiscard]] json::WorktreeExamination examined(bool fixes = false) const {
        DoctorOptions options;
        options.is_strict = true;
        options.fixes = fixes;
        return *examine(repository_, options);
    }
    void expect_clean() const {
        EXPECT_THAT(left_over(), testing::IsEmpty());
        EXPECT_TRUE(std::filesystem::is_empty(control() / stages_folder));
        EXPECT_TRUE(examined().is_healthy());
    }

    Claim mine_;
    json::SnapshotDescriptor first_{};
};

}  // namespace holdfast::guards::worktree
