#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// What some tests need of the machine and what not every machine gives: a chroot and most containers do not.
///
/// A test that misses something skips itself with `GTEST_SKIP() << not_here << "why"`. `make test` lists those at its
/// end, apart from tests that do not apply to their store.
namespace holdfast::tests {

inline constexpr const char* not_here = "not on this machine: ";

/// Whether files can be given to another user: by root, and not by the only user of a namespace.
[[nodiscard]] bool can_give_away();

/// While it lives, this process has the rights of a plain user, which owns `folder` and everything in it: root becomes
/// nobody, and other users stay what they are. The caller must have a single thread.
class AsPlainUser {
public:
    explicit AsPlainUser(const std::filesystem::path& folder);
    AsPlainUser(const AsPlainUser&) = delete;
    AsPlainUser& operator=(const AsPlainUser&) = delete;
    ~AsPlainUser();

    /// False where root cannot become another user.
    [[nodiscard]] explicit operator bool() const { return !is_root_; }

private:
    bool is_root_ = false;
    bool was_root_ = false;
};

inline constexpr int no_mounts = 77;

/// Runs `work` in a child that has a view of the mounts to itself, and returns its result.
/// `no_mounts` where there is no such view; `work` returns it, too, when it cannot mount what it needs. The caller must
/// have a single thread.
[[nodiscard]] int in_own_mounts(const std::function<int()>& work);

/// Whether `command`, which is to start another, can start /bin/true here: `unshare --user`, `strace`.
[[nodiscard]] bool can_run(std::vector<std::string> command);

}  // namespace holdfast::tests
