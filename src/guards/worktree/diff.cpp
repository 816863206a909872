#include "guards/worktree/diff.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/copy_file.hpp"
#include "values/text.hpp"

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <utility>

namespace holdfast::guards::worktree {
namespace {

class SnapshotEntries final : public EntrySource {
public:
    SnapshotEntries(const SnapshotReader& snapshot, ManifestReader manifest)
        : snapshot_(snapshot), manifest_(std::move(manifest)) {}

    Result<std::optional<Entry>> next() override {
        auto entry = manifest_.next();
        if (!entry || *entry) return entry;
        if (auto checked = snapshot_.check(manifest_); !checked) return std::unexpected(checked.error());
        return entry;
    }
    Result<void> hash(Entry&, const Entry&) override { return {}; }

private:
    const SnapshotReader& snapshot_;
    ManifestReader manifest_;
};

class LiveEntries final : public EntrySource {
public:
    LiveEntries(int root, WalkOptions options) : root_(root), walker_(root, std::move(options)), copier_(facts_) {}

    Result<std::optional<Entry>> next() override {
        auto found = walker_.next();
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        found_ = *std::move(*found);
        Entry entry = found_.entry;
        if (auto read = read_details(entry); !read) return std::unexpected(read.error());
        return entry;
    }

    Result<void> hash(Entry& entry, const Entry& known) override {
        if (known.kind == Kind::file && !known.is_racy && known.identity == entry.identity &&
            known.size == entry.size) {
            entry.hash = known.hash;
            return {};
        }
        const base::Fd file(openat(folder(), found_.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!file) return std::unexpected(base::os_error(errno, "read " + printable(entry.path)));
        const auto read = copier_.hash(file.get(), entry.size, entry.path);
        if (!read) return std::unexpected(read.error());
        entry.hash = read->hash;
        return {};
    }

private:
    [[nodiscard]] int folder() const { return found_.folder ? found_.folder->fd.get() : root_; }

    Result<void> read_details(Entry& entry) {
        if (entry.kind == Kind::symlink) {
            auto target = target_of(folder(), found_.name);
            if (!target) return std::unexpected(target.error());
            entry.target = *std::move(target);
        }
        auto attributes = found_.opened ? attributes_of(found_.opened->fd.get(), entry.path)
                                        : attributes_at(folder(), found_.name, entry.path);
        if (!attributes) return std::unexpected(attributes.error());
        entry.attributes = *std::move(attributes);
        if (entry.kind != Kind::file || found_.names < 2) return {};
        const auto [first, is_new] =
            first_names_.try_emplace({entry.identity.device, entry.identity.inode}, entry.path);
        if (is_new) return {};
        entry.kind = Kind::hard_link;
        entry.target = first->second;
        return {};
    }

    int root_;
    Walker walker_;
    CopyFacts facts_{};
    FileCopier copier_;
    Found found_{};
    /// Of files with several names: under which one each came first.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> first_names_{};
};

std::optional<Change> change_between(const Entry& older, const Entry& newer) {
    if (older.kind != newer.kind) return Change::type;
    if (older.target != newer.target || older.device != newer.device) return Change::content;
    // Everything else of a further name is that of its file.
    if (older.kind == Kind::hard_link) return std::nullopt;
    if (older.size != newer.size || older.hash != newer.hash) return Change::content;
    Entry same_time = newer;
    if (older.kind == Kind::folder) same_time.mtime = older.mtime;
    return older.has_same_metadata(same_time) ? std::nullopt : std::optional(Change::metadata);
}

}  // namespace

Result<std::unique_ptr<EntrySource>> entries_of(const SnapshotReader& snapshot) {
    auto manifest = snapshot.manifest();
    if (!manifest) return std::unexpected(manifest.error());
    return std::make_unique<SnapshotEntries>(snapshot, *std::move(manifest));
}

std::unique_ptr<EntrySource> entries_of(int root, WalkOptions options) {
    return std::make_unique<LiveEntries>(root, std::move(options));
}

std::string_view name_of(Change change) {
    switch (change) {
        case Change::added: return "added";
        case Change::deleted: return "deleted";
        case Change::content: return "content";
        case Change::metadata: return "metadata";
        case Change::type: return "type";
    }
    std::unreachable();
}

Result<void> compare(EntrySource& older, EntrySource& newer,
                     const std::function<Result<void>(const Difference&)>& each) {
    auto old_entry = older.next();
    auto new_entry = newer.next();
    for (;;) {
        if (!old_entry) return std::unexpected(old_entry.error());
        if (!new_entry) return std::unexpected(new_entry.error());
        if (!*old_entry && !*new_entry) return {};
        const bool is_old_first = *old_entry && (!*new_entry || comes_before((*old_entry)->path, (*new_entry)->path));
        const bool is_new_first =
            *new_entry && !is_old_first && (!*old_entry || comes_before((*new_entry)->path, (*old_entry)->path));
        Result<void> told;
        if (is_old_first) {
            told = each({Change::deleted, **old_entry});
        } else if (is_new_first) {
            told = each({Change::added, **new_entry});
        } else {
            if ((*old_entry)->kind == Kind::file && (*new_entry)->kind == Kind::file &&
                (*old_entry)->size == (*new_entry)->size) {
                if (auto hashed = older.hash(**old_entry, **new_entry); !hashed) return hashed;
                if (auto hashed = newer.hash(**new_entry, **old_entry); !hashed) return hashed;
            }
            if (const auto change = change_between(**old_entry, **new_entry)) told = each({*change, **new_entry});
        }
        if (!told) return told;
        if (!is_new_first) old_entry = older.next();
        if (!is_old_first) new_entry = newer.next();
    }
}

}  // namespace holdfast::guards::worktree
