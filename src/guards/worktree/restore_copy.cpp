#include "guards/worktree/restore_copy.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/finish_tree.hpp"
#include "guards/worktree/in_order.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace holdfast::guards::worktree {
namespace {

std::unexpected<Error> differs(std::string_view path, std::string_view how) {
    return fail(Errc::payload_hash_mismatch,
                fmt::format("{} is not what was stored in the snapshot: {}", printable(path), how));
}

std::string_view parent_of(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_special(Kind kind) {
    return kind == Kind::socket || kind == Kind::block_device || kind == Kind::character_device;
}

/// Decides, entry by entry in their order, what is copied.
class Selector {
public:
    explicit Selector(const RestoreSelection& selection) : selection_(selection) {}

    bool takes(const Entry& entry) {
        if (is_leaving_out_ && is_at_or_beneath(entry.path, left_out_)) return false;
        is_leaving_out_ = false;
        if (!is_at_or_beneath(entry.path, selection_.path)) {
            // The folders that lead to what is selected.
            return entry.kind == Kind::folder && is_at_or_beneath(selection_.path, entry.path);
        }
        if (selection_.leave_out && !entry.path.empty() && selection_.leave_out(entry)) {
            is_leaving_out_ = true;
            left_out_ = entry.path;
            return false;
        }
        is_found_ = true;
        return true;
    }
    [[nodiscard]] bool is_found() const { return is_found_; }

private:
    const RestoreSelection& selection_;
    std::string left_out_{};
    bool is_leaving_out_ = false;
    bool is_found_ = false;
};

/// A file's further names are links to its first one in the list. Where the first is not selected, the next takes its
/// place, with what the list says of the first.
class FirstNames {
public:
    /// Reads the manifest once, to find the first names that are not selected but are needed by names that are.
    Result<void> learn(const SnapshotReader& snapshot, const RestoreSelection& selection) {
        auto manifest = snapshot.manifest();
        if (!manifest) return std::unexpected(manifest.error());
        Selector selector(selection);
        // Only those can be needed that come first and have further names, and nothing says so before the further name.
        std::set<std::string> needed;
        for (;;) {
            auto entry = manifest->next();
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) break;
            if (selector.takes(**entry) && (*entry)->kind == Kind::hard_link) needed.insert((*entry)->target);
        }
        if (auto checked = snapshot.check(*manifest); !checked) return checked;
        if (!selector.is_found())
            return fail(Errc::lock_not_held, fmt::format("the snapshot {} has no {}", snapshot.descriptor().snapshot_id,
                                                         printable(selection.path)));
        needed_ = std::move(needed);
        return {};
    }

    void pass_over(const Entry& entry) {
        if (entry.kind == Kind::file && needed_.contains(entry.path)) left_out_.emplace(entry.path, entry);
    }

    /// Makes a file of a further name whose first one was passed over.
    void correct(Entry& entry) {
        if (entry.kind != Kind::hard_link) return;
        const auto first = left_out_.find(entry.target);
        if (first == left_out_.end()) return;
        const auto [replaced, is_new] = replacements_.try_emplace(entry.target, entry.path);
        if (!is_new) {
            entry.target = replaced->second;
            return;
        }
        Entry file = first->second;
        file.path = entry.path;
        entry = std::move(file);
    }

private:
    std::set<std::string> needed_{};
    std::map<std::string, Entry> left_out_{};
    std::map<std::string, std::string> replacements_{};
};

/// Reads the manifest and opens the folders on the way, in the payload and, if there is one, in the copy.
class Source {
public:
    Source(const SnapshotReader& snapshot, ManifestReader manifest, int tree)
        : snapshot_(snapshot), manifest_(std::move(manifest)), tree_(tree) {}

    /// The next entry, whatever it is; absent after the whole manifest was checked.
    Result<std::optional<Entry>> next() {
        auto entry = manifest_.next();
        if (!entry) return entry;
        if (!*entry)
            if (auto checked = snapshot_.check(manifest_); !checked) return std::unexpected(checked.error());
        return entry;
    }

    /// Where `entry` is and goes to. A folder is made and entered.
    Result<Item> place(Entry entry) {
        Item item;
        item.name = name_in(entry.path);
        if (!entry.path.empty()) {
            if (item.name.empty() || item.name == "." || item.name == "..")
                return differs(entry.path, "no file can be called that");
            while (!levels_.empty() && levels_.back().from->path != parent_of(entry.path)) levels_.pop_back();
            if (levels_.empty()) return differs(entry.path, "its folder is missing from the list");
            item.from = levels_.back().from;
            item.to = levels_.back().to;
        }
        if (entry.kind == Kind::folder)
            if (auto entered = enter(entry, item); !entered) return std::unexpected(entered.error());
        item.entry = std::move(entry);
        return item;
    }

private:
    struct Level {
        std::shared_ptr<const OpenFolder> from{};
        std::shared_ptr<const OpenFolder> to{};
    };

    Result<void> enter(const Entry& entry, const Item& item) {
        auto from = item.from ? open_folder_at(item.from->fd.get(), item.name, entry.path)
                              : open_beneath(snapshot_.payload(), "");
        if (!from) return std::unexpected(from.error());
        Level level{std::make_shared<const OpenFolder>(OpenFolder{*std::move(from), entry.path}), {}};
        if (tree_ >= 0) {
            if (item.to) {
                const auto made = make_folder(item.to->fd.get(), item.name, entry.path);
                if (!made) return std::unexpected(made.error());
                if (!*made) return differs(entry.path, "it is in the list twice");
            }
            auto to = item.to ? open_folder_at(item.to->fd.get(), item.name, entry.path) : open_beneath(tree_, "");
            if (!to) return std::unexpected(to.error());
            level.to = std::make_shared<const OpenFolder>(OpenFolder{*std::move(to), entry.path});
        }
        levels_.push_back(std::move(level));
        return {};
    }

    const SnapshotReader& snapshot_;
    ManifestReader manifest_;
    int tree_;
    std::vector<Level> levels_{};
};

Result<base::Fd> open_stored_file(const Item& item) {
    base::Fd file(openat(item.from->fd.get(), item.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && (errno == ENOENT || errno == ELOOP)) return differs(item.entry.path, "it is not there");
    if (!file) return std::unexpected(base::os_error(errno, "read " + printable(item.entry.path)));
    struct stat facts{};
    if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        static_cast<std::uint64_t>(facts.st_size) != item.entry.size)
        return differs(item.entry.path, "it has another size or type");
    return file;
}

Result<void> check_copied(const Item& item, const FileCopier::Copied& copied) {
    if (copied.size != item.entry.size || copied.hash != item.entry.hash)
        return differs(item.entry.path, "its hash does not fit");
    if (!copied.is_equal)
        return differs(item.entry.path,
                       "the copy has other bytes than were read, so this file system cannot be trusted");
    return {};
}

Result<void> copy_item(const Item& item, FileCopier& copier) {
    const Entry& entry = item.entry;
    if (entry.kind == Kind::symlink || entry.kind == Kind::fifo) return make_other(item.to->fd.get(), item.name, entry);
    if (entry.kind != Kind::file) return {};
    const auto from = open_stored_file(item);
    if (!from) return std::unexpected(from.error());
    const auto created = create_file(item.to->fd.get(), item.name, entry.path);
    if (!created) return std::unexpected(created.error());
    const base::Fd to(*created);
    const auto copied = copier.copy(from->get(), to.get(), entry.size, entry.path);
    if (!copied) return std::unexpected(copied.error());
    if (auto checked = check_copied(item, *copied); !checked) return checked;
    return apply_metadata(to.get(), entry);
}

/// What of a stored entry is not a file's content.
Result<void> verify_other(const Item& item) {
    const Entry& entry = item.entry;
    if (!item.from || is_special(entry.kind)) return {};
    struct stat facts{};
    if (fstatat(item.from->fd.get(), item.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
        return differs(entry.path, "it is not there");
    const Kind expected = entry.kind == Kind::hard_link ? Kind::file : entry.kind;
    if (entry_of(facts).kind != expected) return differs(entry.path, "it has another type");
    if (entry.kind != Kind::symlink) return {};
    const auto target = target_of(item.from->fd.get(), item.name);
    if (!target) return std::unexpected(target.error());
    if (*target != entry.target) return differs(entry.path, "the link has another target");
    return {};
}

Result<void> verify_item(const Item& item, FileCopier& copier) {
    if (item.entry.kind != Kind::file) return verify_other(item);
    const auto from = open_stored_file(item);
    if (!from) return std::unexpected(from.error());
    const auto hashed = copier.hash(from->get(), item.entry.size, item.entry.path);
    if (!hashed) return std::unexpected(hashed.error());
    return check_copied(item, *hashed);
}

}  // namespace

bool is_at_or_beneath(std::string_view path, std::string_view folder) {
    if (folder.empty() || path == folder) return true;
    return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

Result<RestoredTree> copy_snapshot(const SnapshotReader& snapshot, int stage, int tree,
                                   const RestoreSelection& selection) {
    FirstNames first_names;
    if (auto learnt = first_names.learn(snapshot, selection); !learnt) return std::unexpected(learnt.error());
    auto manifest = snapshot.manifest();
    if (!manifest) return std::unexpected(manifest.error());
    auto list = ManifestWriter::create(stage, manifest_file);
    if (!list) return std::unexpected(list.error());
    Source source(snapshot, *std::move(manifest), tree);
    Selector selector(selection);
    RestoredTree restored;
    CopyFacts facts;

    InOrder job;
    job.threads = copying_threads();
    job.facts = &facts;
    job.stop = selection.stop;
    job.next = [&]() -> Result<std::optional<Item>> {
        for (;;) {
            auto entry = source.next();
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) return std::nullopt;
            if (!selector.takes(**entry)) {
                first_names.pass_over(**entry);
                continue;
            }
            first_names.correct(**entry);
            auto item = source.place(std::move(**entry));
            if (!item) return std::unexpected(item.error());
            return std::optional<Item>(*std::move(item));
        }
    };
    job.work = copy_item;
    job.done = [&](const Item& item) -> Result<void> {
        if (is_special(item.entry.kind)) {
            ++restored.special;
            return {};
        }
        if (auto added = list->add(item.entry); !added) return added;
        ++restored.entries;
        if (selection.progress) selection.progress(restored.entries, facts);
        return {};
    };
    if (auto copied = run_in_order(job); !copied) return std::unexpected(copied.error());
    const auto totals = list->finish();
    if (!totals) return std::unexpected(totals.error());
    if (auto finished = finish_tree(tree, stage, manifest_file); !finished) return std::unexpected(finished.error());
    if (auto synced = sync_file_system(tree, "the restored tree"); !synced) return std::unexpected(synced.error());
    restored.files = totals->files;
    restored.bytes = totals->bytes;
    restored.reflinked = facts.reflinked;
    return restored;
}

Result<std::uint64_t> verify_snapshot(const SnapshotReader& snapshot, std::stop_token stop,
                                      const std::function<void(const Entry&, const Error&)>& found) {
    auto manifest = snapshot.manifest();
    if (!manifest) return std::unexpected(manifest.error());
    Source source(snapshot, *std::move(manifest), -1);
    std::uint64_t verified = 0;
    CopyFacts facts;
    FileCopier copier(facts, std::move(stop));
    for (;;) {
        auto entry = source.next();
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return verified + 1;
        const auto item = source.place(std::move(**entry));
        if (!item) return std::unexpected(item.error());
        const auto fits = verify_item(*item, copier);
        if (!fits && fits.error().code != Errc::payload_hash_mismatch) return std::unexpected(fits.error());
        if (!fits) found(item->entry, fits.error());
        if (fits && item->entry.kind == Kind::file) ++verified;
    }
}

}  // namespace holdfast::guards::worktree
