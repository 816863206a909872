#include "guards/worktree/copy_live.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/repository.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace holdfast::guards::worktree {
namespace {

/// How often a file that changes under the copy is read, if the snapshot need not be of one moment.
constexpr int most_tries = 3;

Error moved(const std::string& path) {
    return {Errc::consistency_unavailable,
            fmt::format("the tree changed while it was copied: {} changed", printable(path))};
}

std::unexpected<Error> failed(std::string_view doing, const std::string& path) {
    return std::unexpected(base::os_error(errno, fmt::format("{} {}", doing, printable(path))));
}

/// Reading leaves no trace in the access time, where we may ask for that.
base::Fd open_source(int folder, const std::string& name) {
    constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    base::Fd file(openat(folder, name.c_str(), flags | O_NOATIME));
    if (!file && errno == EPERM) file = base::Fd(openat(folder, name.c_str(), flags));
    return file;
}

class LiveCopying {
public:
    explicit LiveCopying(const LiveCopyJob& job)
        : job_(job), walker_(job.worktree, {job.exclusions, job.stop, !is_quiesced()}) {}

    Result<LiveCopy> run() {
        auto writer = ManifestWriter::create(job_.manifest_folder, manifest_file);
        if (!writer) return std::unexpected(writer.error());
        if (job_.base != nullptr) {
            auto reader = ManifestReader::open(job_.base->folder.get(), manifest_file);
            if (!reader) return std::unexpected(reader.error());
            base_.emplace(*std::move(reader));
        }
        InOrder order;
        order.threads = copying_threads();
        order.facts = job_.facts;
        order.stop = job_.stop;
        order.next = [this] { return next(); };
        order.work = [this](Item& item, FileCopier& copier) { return work(item, copier); };
        order.done = [&](const Item& item) {
            if (job_.tick) job_.tick(item.entry);
            return writer->add(item.entry);
        };
        if (auto ran = run_in_order(order); !ran) return std::unexpected(ran.error());
        auto totals = writer->finish();
        if (!totals) return std::unexpected(totals.error());
        return LiveCopy{*totals, walker_.excluded(), unread_};
    }

private:
    [[nodiscard]] bool is_quiesced() const { return job_.consistency == json::Consistency::quiesced; }

    /// A folder that the walk is in, and the two that belong to it.
    struct Level {
        std::string path{};
        std::shared_ptr<const OpenFolder> copy{};
        std::shared_ptr<const OpenFolder> base{};  ///< Null if the base has no such folder.
    };

    /// The base's entry of that path.
    Result<std::optional<Entry>> base_entry(const std::string& path) {
        if (!base_) return std::nullopt;
        for (;;) {
            if (!base_next_) {
                auto next = base_->next();
                if (!next || !*next) {
                    if (!next) return std::unexpected(next.error());
                    base_.reset();
                    return std::nullopt;
                }
                base_next_ = *std::move(next);
            }
            if (comes_before(base_next_->path, path)) {
                base_next_.reset();
                continue;
            }
            if (base_next_->path != path) return std::nullopt;
            return std::exchange(base_next_, std::nullopt);
        }
    }

    Result<std::optional<Item>> next() {
        auto found = walker_.next();
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        Item item;
        item.entry = std::move((*found)->entry);
        item.from = (*found)->folder;
        item.name = (*found)->name;
        if (is_quiesced() && !item.entry.hides_others && has_moved(item.entry.identity.ctime, job_.since))
            return std::unexpected(moved(item.entry.path.empty() ? "the worktree's own folder" : item.entry.path));
        item.entry.is_racy = is_racy(item.entry.identity.ctime, job_.since);
        auto base = base_entry(item.entry.path);
        if (!base) return std::unexpected(base.error());
        item.base = *std::move(base);
        if (item.from)
            while (levels_.back().path != item.from->path) levels_.pop_back();
        if (!levels_.empty()) {
            item.to = levels_.back().copy;
            item.base_folder = levels_.back().base;
        }
        if (item.entry.kind == Kind::folder) {
            auto entered = enter(item, *(*found)->opened);
            if (!entered) return std::unexpected(entered.error());
        }
        if (item.entry.kind == Kind::file && (*found)->names > 1) {
            const auto [first, is_new] =
                names_.try_emplace(std::pair(item.entry.identity.device, item.entry.identity.inode), item.entry.path);
            if (!is_new) {
                item.entry.kind = Kind::hard_link;
                item.entry.target = first->second;
            }
        }
        return item;
    }

    /// Makes the folder in the copy, so that everything in it has a place to go to.
    Result<void> enter(Item& item, const OpenFolder& source) {
        auto attributes = attributes_of(source.fd.get(), item.entry.path);
        if (!attributes) return std::unexpected(attributes.error());
        item.entry.attributes = *std::move(attributes);
        Level level;
        level.path = item.entry.path;
        if (levels_.empty()) {
            auto copy = open_beneath(job_.payload, "");
            if (!copy) return std::unexpected(copy.error());
            level.copy = std::make_shared<const OpenFolder>(OpenFolder{*std::move(copy), level.path});
        } else {
            const int parent = levels_.back().copy->fd.get();
            const auto made = make_folder(parent, item.name, item.entry.path);
            if (!made) return std::unexpected(made.error());
            auto copy = open_folder_at(parent, item.name, item.entry.path);
            if (!copy) return std::unexpected(copy.error());
            level.copy = std::make_shared<const OpenFolder>(OpenFolder{*std::move(copy), level.path});
        }
        if (item.base && item.base->kind == Kind::folder) {
            auto base = levels_.empty() ? open_beneath(job_.base->payload.get(), "")
                        : levels_.back().base
                            ? open_folder_at(levels_.back().base->fd.get(), item.name, item.entry.path)
                            : Result<base::Fd>(base::Fd());
            // A folder of the payload that cannot be opened only costs a copy.
            if (base && *base)
                level.base = std::make_shared<const OpenFolder>(OpenFolder{*std::move(base), level.path});
        }
        levels_.push_back(std::move(level));
        return {};
    }

    // In any thread, from here on.

    Result<void> work(Item& item, FileCopier& copier) {
        switch (item.entry.kind) {
            case Kind::file: return take_file(item, copier);
            case Kind::symlink: {
                auto target = target_of(item.from->fd.get(), item.name);
                if (!target) return gone(item, target.error());
                item.entry.target = *std::move(target);
                return take_other(item);
            }
            case Kind::fifo: return take_other(item);
            default: return {};
        }
    }

    Result<void> gone(Item& item, const Error& error) {
        if (is_quiesced()) return std::unexpected(error.code == Errc::denied ? error : moved(item.entry.path));
        item.is_gone = true;
        return {};
    }

    Result<void> take_other(Item& item) {
        auto attributes = attributes_at(item.from->fd.get(), item.name, item.entry.path);
        if (!attributes) return gone(item, attributes.error());
        item.entry.attributes = *std::move(attributes);
        return make_other(item.to->fd.get(), item.name, item.entry, Attributed::where_possible);
    }

    /// Whether the base's file became a name of the copy.
    bool link_from_base(const Item& item) {
        return item.base_folder &&
               linkat(item.base_folder->fd.get(), item.name.c_str(), item.to->fd.get(), item.name.c_str(), 0) == 0;
    }

    Result<void> take_file(Item& item, FileCopier& copier) {
        Entry& entry = item.entry;
        const bool has_base = item.base && item.base->kind == Kind::file && item.base_folder;
        if (has_base && job_.since.ctime_is_trusted && !entry.is_racy && !item.base->is_racy &&
            entry.identity == item.base->identity && entry.size == item.base->size) {
            // Nobody has touched it, its attributes included.
            entry.attributes = item.base->attributes;
            if (entry.has_same_metadata(*item.base) && link_from_base(item)) {
                entry.hash = item.base->hash;
                ++unread_;
                return {};
            }
        }
        for (int tries = 1;; ++tries) {
            const base::Fd source = open_source(item.from->fd.get(), item.name);
            if (!source) {
                if (errno == ENOENT || errno == ELOOP) return gone(item, moved(entry.path));
                return failed("read", entry.path);
            }
            auto taken = take_open_file(item, source.get(), copier, has_base);
            if (!taken) return std::unexpected(taken.error());
            if (*taken == Taken::whole) return {};
            if (is_quiesced()) return std::unexpected(moved(entry.path));
            if (*taken == Taken::other_thing) return gone(item, moved(entry.path));
            entry.is_racy = true;
            if (tries == most_tries) return {};
            if (unlinkat(item.to->fd.get(), item.name.c_str(), 0) != 0) return failed("write", entry.path);
        }
    }

    enum class Taken { whole, while_it_changed, other_thing };

    Result<Taken> take_open_file(Item& item, int source, FileCopier& copier, bool has_base) {
        Entry& entry = item.entry;
        struct stat before{};
        if (fstat(source, &before) != 0) return failed("look at", entry.path);
        Entry now = entry_of(before);
        if (now.kind != Kind::file || now.identity.inode != entry.identity.inode ||
            now.identity.device != entry.identity.device)
            return Taken::other_thing;
        if (is_quiesced() && (now.identity != entry.identity || now.size != entry.size)) return Taken::while_it_changed;
        now.path = entry.path;
        now.is_racy = is_racy(now.identity.ctime, job_.since);
        auto attributes = attributes_of(source, entry.path);
        if (!attributes) return std::unexpected(attributes.error());
        now.attributes = *std::move(attributes);
        entry = std::move(now);

        // What looks as in the base probably is: reading it is enough to know, and it need not be there twice.
        if (has_base && entry.has_same_metadata(*item.base)) {
            const auto read = copier.hash(source, entry.size, entry.path);
            if (!read) return std::unexpected(read.error());
            if (read->size == entry.size && read->hash == item.base->hash && link_from_base(item)) {
                entry.hash = read->hash;
                return settled(source, before);
            }
        }
        const auto target = create_file(item.to->fd.get(), item.name, entry.path);
        if (!target) return std::unexpected(target.error());
        const base::Fd copy(*target);
        const auto copied = copier.copy(source, copy.get(), entry.size, entry.path);
        if (!copied) return std::unexpected(copied.error());
        entry.hash = copied->hash;
        const auto after = settled(source, before);
        if (!after) return after;
        if (*after == Taken::whole && !copied->is_equal)
            return fail(Errc::payload_hash_mismatch,
                        fmt::format("the file system made a copy of {} with other bytes", printable(entry.path)));
        if (copied->size != entry.size) entry.size = copied->size;
        if (auto applied = apply_metadata(copy.get(), entry, Attributed::where_possible); !applied)
            return std::unexpected(applied.error());
        return *after == Taken::whole && copied->is_equal ? Taken::whole : Taken::while_it_changed;
    }

    static Result<Taken> settled(int source, const struct stat& before) {
        struct stat after{};
        if (fstat(source, &after) != 0)
            return std::unexpected(base::os_error(errno, "look again at a file that was copied"));
        const bool is_same = after.st_size == before.st_size && moment_of(after.st_ctim) == moment_of(before.st_ctim) &&
                             moment_of(after.st_mtim) == moment_of(before.st_mtim);
        return is_same ? Taken::whole : Taken::while_it_changed;
    }

    const LiveCopyJob& job_;
    Walker walker_;
    std::optional<ManifestReader> base_{};
    std::optional<Entry> base_next_{};
    std::vector<Level> levels_{};
    /// The first name of each file that has several. Grows with their number.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names_{};
    std::atomic<std::uint64_t> unread_ = 0;
};

}  // namespace

Result<LiveCopy> copy_live(const LiveCopyJob& job) { return LiveCopying(job).run(); }

}  // namespace holdfast::guards::worktree
