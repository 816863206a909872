#include "guards/worktree/proof.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/manifest.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

/// File systems of this host that stamp every change with the kernel's clock, and the first write through a mapping
/// after each time that the page was written back.
constexpr std::array<std::uint32_t, 5> trusted{
    0x0000ef53,  // ext2, ext3, ext4
    0x58465342,  // XFS
    0x9123683e,  // Btrfs
    0xf2f52010,  // F2FS
    0xca451a4e,  // bcachefs
};

/// Others that stamp with the kernel's clock, but not every write through a mapping.
constexpr std::array<std::uint32_t, 4> local{
    0x01021994,  // tmpfs
    0x858458f6,  // ramfs
    0x794c7630,  // overlay
    0x2fc12fc1,  // ZFS
};

bool is_among(std::span<const std::uint32_t> all, std::uint32_t type) {
    return std::ranges::find(all, type) != all.end();
}

constexpr std::size_t most_named = 5;

/// The clock that file systems stamp with. Not that of the caller: a test that moves its own does not move the
/// kernel's.
Moment read_clock(clockid_t which) {
    timespec now{};
    clock_gettime(which, &now);
    return moment_of(now);
}

class Proof {
public:
    Proof(const ProofJob& job, ManifestReader manifest)
        : job_(job),
          manifest_(std::move(manifest)),
          walker_(job.worktree, {job.exclusions, job.stop}),
          copier_(*job.facts, job.stop) {}

    Result<void> run() {
        auto known = manifest_.next();
        auto found = walker_.next();
        for (;;) {
            if (!known) return std::unexpected(known.error());
            if (!found) return std::unexpected(found.error());
            if ((!*known && !*found) || moved_.size() >= most_named) break;
            if (job_.tick) job_.tick();
            const bool is_new = !*known || (*found && comes_before((*found)->entry.path, (*known)->path));
            const bool is_gone = !is_new && (!*found || comes_before((*known)->path, (*found)->entry.path));
            if (is_new) {
                note((*found)->entry.path, "is new");
            } else if (is_gone) {
                note((*known)->path, "is gone");
            } else if (auto same = compare(**known, **found); !same) {
                return same;
            }
            if (!is_new) known = manifest_.next();
            if (!is_gone) found = walker_.next();
        }
        if (moved_.empty()) return expect_the_clock_went_on();
        return fail(Errc::consistency_unavailable,
                    fmt::format("the tree changed while it was copied: {}", fmt::join(moved_, ", ")));
    }

private:
    void note(const std::string& path, std::string_view what) {
        moved_.push_back(fmt::format("{} {}", path.empty() ? "the worktree's own folder" : printable(path), what));
    }

    Result<void> compare(const Entry& known, const Found& found) {
        const Entry& now = found.entry;
        const Kind kind = known.kind == Kind::hard_link ? Kind::file : known.kind;
        const bool is_same_thing = kind == now.kind && known.identity.device == now.identity.device &&
                                   known.identity.inode == now.identity.inode && known.mode == now.mode &&
                                   known.owner == now.owner && known.group == now.group;
        // What the exclusion list leaves out may come and go, and changes the times of its folder.
        const bool times_count = !known.hides_others;
        const bool is_unchanged =
            is_same_thing && known.size == now.size &&
            (!times_count || (known.mtime == now.mtime && known.identity.ctime == now.identity.ctime));
        if (!is_unchanged) {
            note(known.path, "changed");
            return {};
        }
        if (kind != Kind::file || !known.is_racy) return {};
        return compare_content(known, found);
    }

    Result<void> compare_content(const Entry& known, const Found& found) {
        const base::Fd file(
            openat(found.folder->fd.get(), found.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!file) {
            note(known.path, "changed");
            return {};
        }
        const auto again = copier_.hash(file.get(), known.size, known.path);
        if (!again) return std::unexpected(again.error());
        if (known.kind == Kind::hard_link) return {};  // Its content is that of the name before.
        if (again->hash != known.hash || again->size != known.size) note(known.path, "changed");
        return {};
    }

    /// A clock that was set back meanwhile could have stamped a change with a time that looks old.
    [[nodiscard]] Result<void> expect_the_clock_went_on() const {
        if (read_clock(CLOCK_REALTIME_COARSE) >= job_.since.from) return {};
        return fail(Errc::consistency_unavailable, "the clock of this host was set back while the tree was copied");
    }

    const ProofJob& job_;
    ManifestReader manifest_;
    Walker walker_;
    FileCopier copier_;
    std::vector<std::string> moved_{};
};

}  // namespace

Result<QuietSince> settle(int worktree) {
    struct statfs system{};
    struct stat facts{};
    if (fstatfs(worktree, &system) != 0 || fstat(worktree, &facts) != 0)
        return std::unexpected(base::os_error(errno, "look at the worktree"));
    QuietSince since;
    const auto type = static_cast<std::uint32_t>(system.f_type);
    since.ctime_is_trusted = is_among(trusted, type);
    since.stamps_are_ours = since.ctime_is_trusted || is_among(local, type);
    // The clock of stamps moves in ticks. A change in this tick, before now, must not look like one after it.
    Moment passed = read_clock(CLOCK_REALTIME);
    const bool has_whole_seconds = facts.st_ctim.tv_nsec == 0 && facts.st_mtim.tv_nsec == 0;
    if (has_whole_seconds) passed = {passed.seconds, 999'999'999};
    while ((since.from = read_clock(CLOCK_REALTIME_COARSE)) <= passed)
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    if (has_whole_seconds) since.from.nanoseconds = 0;
    if (auto synced = sync_file_system(worktree, "the worktree"); !synced) return std::unexpected(synced.error());
    return since;
}

bool has_moved(const Moment& ctime, const QuietSince& since) {
    return since.stamps_are_ours && ctime >= since.from && ctime <= read_clock(CLOCK_REALTIME);
}

bool is_racy(const Moment& ctime, const QuietSince& since) { return !since.ctime_is_trusted || ctime >= since.from; }

Result<void> prove_quiet(const ProofJob& job) {
    auto manifest = ManifestReader::open(job.manifest_folder, job.manifest);
    if (!manifest) return std::unexpected(manifest.error());
    return Proof(job, *std::move(manifest)).run();
}

}  // namespace holdfast::guards::worktree
