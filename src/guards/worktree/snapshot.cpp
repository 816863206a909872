#include "guards/worktree/snapshot.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/audit_chain.hpp"
#include "guards/worktree/copy_live.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/finish_tree.hpp"
#include "guards/worktree/proof.hpp"
#include "values/sha256.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

Digest hash_of(std::string_view text) {
    return sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<void> tell_audit(const Guard& guard, const Repository& repository, const json::SnapshotDescriptor& descriptor,
                        const std::string& actor) {
    json::WorktreeEvent event;
    event.event = "snapshot_published";
    event.worktree_id = descriptor.worktree_id;
    event.snapshot_id = descriptor.snapshot_id;
    event.token = descriptor.token;
    event.lock_id = descriptor.lock_id;
    event.actor = actor;
    event.details = std::string(json::name_of(descriptor.consistency));
    return repository.append_audit(guard, std::move(event));
}

/// Ids sort in the order in which snapshots are taken, also after the clock was set back.
std::string next_snapshot_id(const Repository& repository) {
    Instant now = repository.clock().wall();
    const auto snapshots = repository.open_control("snapshots");
    const auto names = snapshots ? names_in(snapshots->get(), "snapshots") : std::unexpected(snapshots.error());
    if (!names) return new_snapshot_id(now);
    for (const std::string& name : *names)
        if (is_snapshot_id(name)) now = std::max(now, time_of_id(name) + std::chrono::milliseconds{1});
    return new_snapshot_id(now);
}

/// Moves the head to a snapshot that builds on it, and tells the audit log. Under the guard.
Result<void> advance(const Guard& guard, const Repository& repository, const json::SnapshotDescriptor& descriptor,
                     const std::string& actor) {
    auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    WorktreeRow* row = find_row(*registry, descriptor.worktree_id);
    if (row == nullptr || row->head != descriptor.parent_id)
        return fail(Errc::fencing_mismatch,
                    fmt::format("another snapshot of {} was published meanwhile", descriptor.worktree_id));
    row->head = descriptor.snapshot_id;
    if (auto written = repository.write_registry(guard, *registry); !written) return written;
    return tell_audit(guard, repository, descriptor, actor);
}

/// What was left to do for a snapshot that is published.
Result<void> finish_publishing(const Guard& guard, const Repository& repository,
                               const json::SnapshotDescriptor& published, const std::string& actor) {
    const auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    const WorktreeRow* row = find_row(*registry, published.worktree_id);
    if (row == nullptr) return {};
    if (row->head == published.parent_id) return advance(guard, repository, published, actor);
    if (row->head != published.snapshot_id) return {};
    const auto last = last_event(repository.control_fd());
    if (!last) return std::unexpected(last.error());
    if (*last && (*last)->event.snapshot_id == published.snapshot_id) return {};
    return tell_audit(guard, repository, published, actor);
}

class Taking {
public:
    Taking(const Repository& repository, const WorktreeRow& row, const SnapshotOptions& options)
        : repository_(repository),
          row_(row),
          options_(options),
          id_(next_snapshot_id(repository)),
          temporary_(std::string(unfinished) + id_) {}

    Result<Snapshot> run() {
        auto taken = steps();
        if (taken) return taken;
        // Whatever was published stays. What cannot be removed now is named by doctor.
        if (!is_published_) {
            static_cast<void>(remove_tree(snapshots_.get(), temporary_));
            static_cast<void>(remove_tree(descriptors_.get(), id_ + ".json"));
            static_cast<void>(remove_tree(intents_.get(), id_ + ".json"));
        }
        const bool lost = options_.claim && was_overtaken(repository_, row_.worktree_id, *options_.claim);
        if (lost && taken.error().code != Errc::fencing_mismatch)
            return fail(Errc::fencing_mismatch,
                        "a newer holder has taken the worktree over: nothing was published; " + taken.error().message);
        return taken;
    }

private:
    [[nodiscard]] Deadline soon() const { return Deadline::in(repository_.clock(), options_.patience); }

    Result<Snapshot> steps() {
        if (auto begun = begin(); !begun) return std::unexpected(begun.error());
        if (auto copied = copy_frozen(); !copied) return std::unexpected(copied.error());
        tell("publish");
        if (auto finished = finish_tree(payload_.get(), folder_.get(), manifest_file, Attributed::where_possible);
            !finished)
            return std::unexpected(finished.error());
        // Everything of the payload is on the disk before anything says that it is.
        if (auto synced = sync_file_system(folder_.get(), "the snapshot"); !synced)
            return std::unexpected(synced.error());
        if (auto published = publish(); !published) return std::unexpected(published.error());
        return Snapshot{descriptor_, copy_.unread};
    }

    /// The intent, the folders, and what this snapshot builds on.
    Result<void> begin() {
        auto worktree = repository_.open_worktree(row_.worktree_id);
        auto snapshots = repository_.open_control("snapshots");
        auto descriptors = repository_.open_control("descriptors");
        auto intents = repository_.open_control("intents");
        for (const auto* each : {&worktree, &snapshots, &descriptors, &intents})
            if (!*each) return std::unexpected(each->error());
        worktree_ = *std::move(worktree);
        snapshots_ = *std::move(snapshots);
        descriptors_ = *std::move(descriptors);
        intents_ = *std::move(intents);
        auto exclusions = Exclusions::of(worktree_.get());
        if (!exclusions) return std::unexpected(exclusions.error());
        exclusions_ = *std::move(exclusions);
        json::SnapshotIntent intent;
        intent.snapshot_id = id_;
        intent.worktree_id = row_.worktree_id;
        intent.parent_id = row_.head;
        intent.started_at = repository_.clock().wall();
        intent.holder_id = options_.actor;
        if (options_.claim) {
            intent.token = options_.claim->token.value;
            intent.lock_id = options_.claim->lock_id.text();
        }
        if (auto written =
                write_text(intents_.get(), id_ + ".json", json::snapshot_intent(intent).done().written() + "\n");
            !written)
            return written;
        if (auto made = make_folder(snapshots_.get(), temporary_, temporary_); !made)
            return std::unexpected(made.error());
        auto folder = open_folder_at(snapshots_.get(), temporary_, temporary_);
        if (!folder) return std::unexpected(folder.error());
        folder_ = *std::move(folder);
        // As long as this process lives, so that others can tell what it left behind from what it works on.
        if (flock(folder_.get(), LOCK_EX | LOCK_NB) != 0)
            return std::unexpected(base::os_error(errno, "lock the unfinished snapshot"));
        if (auto made = make_folder(folder_.get(), payload_folder, payload_folder); !made)
            return std::unexpected(made.error());
        auto payload = open_folder_at(folder_.get(), payload_folder, payload_folder);
        if (!payload) return std::unexpected(payload.error());
        payload_ = *std::move(payload);
        open_base();
        return {};
    }

    /// The snapshot before, if all of it can be read. One that is damaged costs a whole copy.
    void open_base() {
        if (row_.head.empty()) return;
        const auto before = repository_.descriptor(row_.head);
        if (!before) return;
        entries_before_ = before->entries;
        auto folder = repository_.open_snapshot(row_.head);
        if (!folder) return;
        auto payload = open_folder_at(folder->get(), payload_folder, payload_folder);
        auto manifest = ManifestReader::open(folder->get(), manifest_file);
        if (!payload || !manifest) return;
        for (auto entry = manifest->next();; entry = manifest->next()) {
            if (!entry) return;
            if (!*entry) break;
        }
        if (manifest->file_hash() != before->manifest_hash) return;
        base_ = BaseSnapshot{*std::move(payload), *std::move(folder)};
    }

    Result<void> copy_frozen() {
        std::optional<Freeze> frozen;
        if (options_.freeze) {
            auto freeze = Freeze::begin(*options_.freeze);
            if (!freeze) return std::unexpected(freeze.error());
            frozen.emplace(*std::move(freeze));
        }
        auto copied = copy_and_prove();
        if (!frozen) return copied;
        auto thawed = frozen->thaw();
        return copied ? thawed : copied;
    }

    Result<void> copy_and_prove() {
        // The folder that is read must be the one that has the name when it was read.
        const auto since = settle(worktree_.get());
        if (!since) return std::unexpected(since.error());
        tell("copy");
        LiveCopyJob job;
        job.worktree = worktree_.get();
        job.payload = payload_.get();
        job.manifest_folder = folder_.get();
        job.exclusions = &exclusions_;
        job.base = base_ ? &*base_ : nullptr;
        job.consistency = options_.consistency;
        job.since = *since;
        job.facts = &facts_;
        job.stop = options_.stop;
        job.tick = [this](const Entry&) { count("copy"); };
        auto copy = copy_live(job);
        if (!copy) return std::unexpected(copy.error());
        copy_ = *std::move(copy);
        if (options_.consistency == json::Consistency::best_effort) return {};
        entries_ = 0;
        ProofJob proof;
        proof.worktree = worktree_.get();
        proof.exclusions = &exclusions_;
        proof.manifest_folder = folder_.get();
        proof.manifest = manifest_file;
        proof.since = *since;
        proof.facts = &facts_;
        proof.stop = options_.stop;
        proof.tick = [this] { count("prove"); };
        if (auto proved = prove_quiet(proof); !proved) return proved;
        return expect_same_folder();
    }

    /// Somebody could have put another folder in the place of the one that was read.
    Result<void> expect_same_folder() {
        struct stat by_name{};
        struct stat by_fd{};
        if (fstatat(repository_.root_fd(), row_.worktree_id.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
            fstat(worktree_.get(), &by_fd) == 0 && by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev)
            return {};
        return fail(Errc::consistency_unavailable, "the folder of the worktree was replaced while it was copied");
    }

    void describe() {
        descriptor_.snapshot_id = id_;
        descriptor_.worktree_id = row_.worktree_id;
        descriptor_.parent_id = row_.head;
        descriptor_.created_at = repository_.clock().wall();
        descriptor_.message = options_.message;
        descriptor_.consistency = options_.consistency;
        descriptor_.is_shared = row_.is_shared;
        if (options_.claim) {
            descriptor_.token = options_.claim->token.value;
            descriptor_.lock_id = options_.claim->lock_id.text();
        }
        descriptor_.holder_id = options_.actor;
        descriptor_.engine = facts_.reflinked > 0 ? "reflink" : "copy";
        descriptor_.payload_root_hash = copy_.totals.root_hash;
        descriptor_.manifest_hash = copy_.totals.file_hash;
        descriptor_.entries = copy_.totals.entries;
        descriptor_.files = copy_.totals.files;
        descriptor_.bytes = copy_.totals.bytes;
        descriptor_.special = copy_.totals.special;
        descriptor_.excluded = copy_.excluded;
    }

    /// Everything from the check of the token to the head is one step for all others: the guard is held throughout.
    Result<void> publish() {
        describe();
        const std::string text = json::snapshot_descriptor(descriptor_).done().written() + "\n";
        json::SnapshotReady ready;
        ready.snapshot_id = id_;
        ready.completed_at = repository_.clock().wall();
        ready.payload_root_hash = descriptor_.payload_root_hash;
        ready.descriptor_hash = hash_of(text);
        const auto guard = repository_.guard(soon());
        if (!guard) return std::unexpected(guard.error());
        if (auto settled = roll_forward(*guard, repository_); !settled) return settled;
        auto registry = repository_.registry();
        if (!registry) return std::unexpected(registry.error());
        const WorktreeRow* row = find_row(*registry, row_.worktree_id);
        if (row == nullptr) return fail(Errc::usage, "the worktree is not registered any more");
        if (options_.claim)
            if (auto current = expect_current(*guard, repository_, *row, *options_.claim, *options_.store, soon());
                !current)
                return current;
        if (row->head != row_.head)
            return fail(Errc::fencing_mismatch,
                        fmt::format("another snapshot of {} was published meanwhile ({}); repeat it", row_.worktree_id,
                                    row->head));
        // An audit log that cannot go on is found before anything is visible.
        if (auto last = last_event(repository_.control_fd()); !last) return std::unexpected(last.error());
        if (auto written = write_text(descriptors_.get(), id_ + ".json", text); !written) return written;
        if (auto written = write_text(folder_.get(), ready_file, json::snapshot_ready(ready).done().written() + "\n");
            !written)
            return written;
        if (renameat(snapshots_.get(), temporary_.c_str(), snapshots_.get(), id_.c_str()) != 0)
            return std::unexpected(base::os_error(errno, "publish the snapshot"));
        is_published_ = true;
        auto settled_now = sync_folder(snapshots_.get(), "snapshots");
        if (settled_now) settled_now = advance(*guard, repository_, descriptor_, options_.actor);
        if (!settled_now)
            return fail(
                Errc::outcome_unknown,
                fmt::format("the snapshot {} is published, but not all of that is on the disk; the next command "
                            "finishes it: {}",
                            id_, settled_now.error().message));
        static_cast<void>(remove_tree(intents_.get(), id_ + ".json"));
        return {};
    }

    void tell(std::string_view step) const {
        if (options_.progress) options_.progress({step, entries_, facts_.bytes_read, entries_before_});
    }
    void count(std::string_view step) {
        if (++entries_ % 64 == 0) tell(step);
    }

    const Repository& repository_;
    const WorktreeRow row_;
    const SnapshotOptions& options_;
    const std::string id_;
    const std::string temporary_;
    Fd worktree_{};
    Fd snapshots_{};
    Fd descriptors_{};
    Fd intents_{};
    Fd folder_{};
    Fd payload_{};
    Exclusions exclusions_{};
    std::optional<BaseSnapshot> base_{};
    CopyFacts facts_{};
    LiveCopy copy_{};
    json::SnapshotDescriptor descriptor_{};
    std::uint64_t entries_ = 0;
    std::uint64_t entries_before_ = 0;
    bool is_published_ = false;
};

}  // namespace

Result<void> roll_forward(const Guard& guard, const Repository& repository) {
    const auto intents = repository.intents();
    if (!intents) return std::unexpected(intents.error());
    const auto folder = repository.open_control("intents");
    if (!folder) return std::unexpected(folder.error());
    for (const json::SnapshotIntent& intent : *intents) {
        const auto published = repository.descriptor(intent.snapshot_id);
        // Not published: its process may still be at work.
        if (!published) continue;
        if (auto finished = finish_publishing(guard, repository, *published, intent.holder_id); !finished)
            return finished;
        if (auto removed = remove_tree(folder->get(), intent.snapshot_id + ".json"); !removed) return removed;
    }
    return {};
}

Result<Snapshot> take_snapshot(const Repository& repository, const std::string& worktree_id,
                               const SnapshotOptions& options) {
    {
        const auto guard = repository.guard(Deadline::in(repository.clock(), options.patience));
        if (!guard) return std::unexpected(guard.error());
        if (auto settled = roll_forward(*guard, repository); !settled) return std::unexpected(settled.error());
    }
    const auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    const WorktreeRow* row = find_row(*registry, worktree_id);
    if (row == nullptr) return fail(Errc::usage, "the worktree " + worktree_id + " is not registered");
    return Taking(repository, *row, options).run();
}

}  // namespace holdfast::guards::worktree
