// Goal: the stores that live in files promise the same in the same place. Method: the numbers by which the kernel
// names file systems, and places that this machine has or can mount.

#include "base/file_system.hpp"

#include "base/os_error.hpp"
#include "holdfast/open.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <sys/mount.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// As the kernel's magic.h, statfs(2) and coreutils' stat have them, written down a second time.
const std::map<std::string_view, std::vector<std::uint32_t>> of_a_network{{"NFS", {0x6969}},
                                                                          {"SMB", {0x517b}},
                                                                          {"CIFS", {0xff534d42}},
                                                                          {"SMB2", {0xfe534d42}},
                                                                          {"9p", {0x01021997}},
                                                                          {"Ceph", {0x00c36400}},
                                                                          {"AFS", {0x5346414f, 0x6b414653}},
                                                                          {"Coda", {0x73757245}},
                                                                          {"NCP", {0x564c}},
                                                                          {"OCFS2", {0x7461636f}},
                                                                          {"GFS2", {0x01161970}},
                                                                          {"Lustre", {0x0bd00bd0}},
                                                                          {"GPFS", {0x47504653}},
                                                                          {"BeeGFS", {0x19830326}},
                                                                          {"OrangeFS", {0x20030528}},
                                                                          {"PanFS", {0xaad7aaea}},
                                                                          {"IBRIX", {0x013111a8}},
                                                                          {"StorNext", {0xbeefdead}},
                                                                          {"ACFS", {0x61636673}},
                                                                          {"vmhgfs", {0xbacbacbc}},
                                                                          {"vboxsf", {0x786f4256}},
                                                                          {"prl_fs", {0x7c7c6673}},
                                                                          {"FUSE", {0x65735546}}};
const std::map<std::string_view, std::vector<std::uint32_t>> of_a_host_or_container{
    {"tmpfs", {0x01021994}}, {"ramfs", {0x858458f6}}, {"overlay", {0x794c7630}}, {"aufs", {0x61756673}}};

void expect_grade(const std::map<std::string_view, std::vector<std::uint32_t>>& kinds, Grade grade) {
    for (const auto& [name, numbers] : kinds)
        for (const std::uint32_t magic : numbers) {
            const base::FileSystem found = base::file_system_of(magic);
            EXPECT_EQ(found.name, name) << std::hex << magic;
            EXPECT_EQ(found.grade, grade) << name;
            EXPECT_NE(found.reason, "") << name;
        }
}

TEST(FileSystem, OfANetworkIsOfGradeC) { expect_grade(of_a_network, Grade::c); }

TEST(FileSystem, ThatGoesWithItsHostOrContainerIsOfGradeB) { expect_grade(of_a_host_or_container, Grade::b); }

TEST(FileSystem, OfALocalDiskIsOfGradeA) {
    for (const std::uint32_t magic : {0xef53U, 0x58465342U, 0x9123683eU, 0x2fc12fc1U})
        EXPECT_EQ(base::file_system_of(magic).grade, Grade::a) << "ext4, XFS, Btrfs, ZFS: " << std::hex << magic;
}

struct Seen {
    Grade grade{};
    std::vector<std::string> reasons{};
    std::string file_system{};
    bool operator==(const Seen&) const = default;
};

Seen seen_by(const std::string& url) {
    const auto store = must(open_store(url));
    Seen seen{store->info().grade, store->info().reasons, ""};
    for (const Finding& finding : store->examine(Deadline::never()))
        if (finding.name == "file_system") seen.file_system = finding.detail;
    return seen;
}

/// What both stores see in `folder`, if they see the same.
Seen seen_by_both(const fs::path& folder, const std::string& parameters = "") {
    const Seen by_file = seen_by("file:" + (folder / "locks").string() + parameters);
    const Seen by_sqlite = seen_by("sqlite:" + (folder / "locks.db").string() + parameters);
    EXPECT_EQ(by_file.grade, by_sqlite.grade);
    EXPECT_EQ(by_file.reasons, by_sqlite.reasons);
    EXPECT_EQ(by_file.file_system, by_sqlite.file_system);
    return by_file;
}

TEST(FileSystem, IsTheSameForBothStores) {
    const TempFolder folder;
    seen_by_both(folder.path());
    EXPECT_GE(seen_by_both(folder.path(), "?sync=off").grade, Grade::b);
    if (!fs::exists("/dev/shm")) return;
    EXPECT_EQ(seen_by_both("/dev/shm/holdfast-not-there").grade, Grade::b);
}

TEST(FileSystem, ThatIsAnOverlayIsOfGradeBForBothStores) {
    const TempFolder folder;
    const int status = in_own_mounts([&] {
        if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) return no_mounts;
        for (const char* part : {"lower", "upper", "work", "merged"}) fs::create_directory(folder.path() / part);
        const std::string parts = "lowerdir=" + (folder.path() / "lower").string() +
                                  ",upperdir=" + (folder.path() / "upper").string() +
                                  ",workdir=" + (folder.path() / "work").string();
        const fs::path merged = folder.path() / "merged";
        if (mount("overlay", merged.c_str(), "overlay", 0, parts.c_str()) != 0) return no_mounts;
        const Seen seen = seen_by_both(merged);
        return seen.grade == Grade::b && seen.file_system == "overlay" && !testing::Test::HasFailure() ? 0 : 1;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "no overlay can be mounted";
    EXPECT_EQ(status, 0);
}

TEST(FileSystem, ThatHasLittleRoomLeftIsFoundAndTheRestIsToldInKibibytes) {
    const TempFolder folder;
    const auto room_with = [&](const char* options, bool ok, const std::string& words) {
        if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, options) != 0) return no_mounts;
        const Finding found = base::free_space_in((folder.path() / "not/there/yet").string());
        EXPECT_EQ(found.ok, ok) << options << ": " << found.detail;
        EXPECT_THAT(found.detail, HasSubstr(words));
        return testing::Test::HasFailure() ? 1 : 0;
    };
    const int status = in_own_mounts([&] {
        for (const int result : {room_with("size=4m,mode=0700", true, "4096 KiB and "),
                                 room_with("size=1m,mode=0700", true, "1024 KiB and "),
                                 room_with("size=1020k,mode=0700", false, "1020 KiB and "),
                                 room_with("size=4m,nr_inodes=102,mode=0700", true, " KiB and 101 files left"),
                                 room_with("size=4m,nr_inodes=50,mode=0700", false, " KiB and 49 files left")})
            if (result != 0) return result;
        return 0;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "no small file system can be mounted";
    EXPECT_EQ(status, 0);
}

TEST(OsError, SaysWhetherToAskForRightsOrToTryAgain) {
    for (const int denied : {EACCES, EPERM}) EXPECT_EQ(base::os_error(denied, "x").code, Errc::denied);
    EXPECT_EQ(base::os_error(ELOOP, "x").code, Errc::store_unsafe);
    for (const int passing : {ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE, ENOMEM, ENOENT})
        EXPECT_EQ(base::os_error(passing, "x").code, Errc::store_unavailable) << passing;
    for (const int unchanged : {EACCES, EPERM, ENOSPC, EIO})
        EXPECT_THAT(base::os_error(unchanged, "write /a/b").message,
                    testing::AllOf(HasSubstr("cannot write /a/b: "), HasSubstr("nothing was changed")));
    EXPECT_THAT(base::os_error(ENOSPC, "x").message, HasSubstr("the disk is full"));
    EXPECT_THAT(base::os_error(EDQUOT, "x").message, HasSubstr("quota"));
    EXPECT_THAT(base::os_error(EROFS, "x").message, HasSubstr("read-only"));
}

}  // namespace
}  // namespace holdfast::tests
