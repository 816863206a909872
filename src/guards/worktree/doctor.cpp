#include "guards/worktree/doctor.hpp"

#include "guards/worktree/audit_chain.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/restore.hpp"
#include "guards/worktree/restore_stage.hpp"
#include "guards/worktree/snapshot.hpp"
#include "guards/worktree/snapshot_reader.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>

namespace holdfast::guards::worktree {
namespace {

using json::Severity;
using json::WorktreeFinding;

constexpr std::chrono::seconds patience{30};
constexpr std::string_view json_suffix = ".json";
constexpr auto kept_words =
    "an old tree that was changed while it was replaced, or could not be removed; look at it, and remove it yourself";

class Doctor {
public:
    Doctor(const Repository& repository, const DoctorOptions& options) : repository_(repository), options_(options) {}

    Result<json::WorktreeExamination> run() {
        {
            // The state of running programs is looked at while none of them can change it.
            const auto guard = repository_.guard(Deadline::in(repository_.clock(), patience));
            if (!guard) return std::unexpected(guard.error());
            for (const auto step : {&Doctor::look_at_restores, &Doctor::look_at_snapshots, &Doctor::look_at_intents,
                                    &Doctor::look_at_descriptors, &Doctor::look_at_temporaries})
                if (auto looked = (this->*step)(*guard); !looked) return std::unexpected(looked.error());
        }
        if (auto looked = look_at_worktrees(); !looked) return std::unexpected(looked.error());
        look_at_leases();
        look_at_audit();
        if (options_.is_strict)
            if (auto verified = verify_payloads(); !verified) return std::unexpected(verified.error());
        return std::move(examination_);
    }

private:
    WorktreeFinding& tell(std::string category, Severity severity, std::string path, std::string description,
                          Errc code = Errc::store_unsafe) {
        examination_.findings.push_back(
            {std::move(category), severity, std::move(path), std::move(description), code, false});
        return examination_.findings.back();
    }

    /// Names a thing that nobody needs, and removes it if that was asked for.
    Result<void> remove_orphan(const std::string& category, int folder, const std::string& folder_name,
                               const std::string& name, const std::string& description) {
        WorktreeFinding& finding = tell(category, Severity::warning, folder_name + "/" + name, description);
        if (!options_.fixes) return {};
        if (auto removed = remove_tree(folder, name); !removed) return removed;
        if (auto synced = sync_folder(folder, folder_name); !synced) return synced;
        finding.is_fixed = true;
        finding.description += ": removed";
        return {};
    }

    Result<void> look_at_restores(const Guard& guard) {
        const auto intents = restore_intents(repository_);
        if (!intents) return std::unexpected(intents.error());
        std::set<std::string> known;
        for (const json::RestoreIntent& intent : *intents) {
            known.insert(intent.restore_id);
            auto stage = RestoreStage::take_over(repository_, guard, intent);
            if (!stage) return std::unexpected(stage.error());
            const std::string path = "intents/" + restore_intent_file(intent.restore_id);
            if (!*stage)
                tell("restore_in_progress", Severity::info, path, "a process is restoring " + intent.worktree_id);
            else
                pending_.push_back(
                    {path, fmt::format("the restore of {} was begun and not finished", intent.worktree_id), intent});
        }
        if (auto finished = finish_restores(guard); !finished) return finished;
        if (auto looked = look_at_stages(known); !looked) return looked;
        return look_at_restore_places(known);
    }

    /// Restores that worked outside of `.holdfast`: in the root of the repository, or in a worktree.
    Result<void> look_at_restore_places(const std::set<std::string>& known) {
        const auto registry = repository_.registry();
        if (!registry) return std::unexpected(registry.error());
        if (auto looked = look_at_places_in(repository_.root_fd(), ".", known); !looked) return looked;
        for (const WorktreeRow& row : registry->worktrees)
            if (const auto folder = repository_.open_worktree(row.worktree_id))
                if (auto looked = look_at_places_in(folder->get(), row.worktree_id, known); !looked) return looked;
        return {};
    }

    Result<void> look_at_places_in(int folder, const std::string& path, const std::set<std::string>& known) {
        const auto names = names_in(folder, path);
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            if (!is_restore_place(name)) continue;
            if (name.starts_with(kept_place)) {
                tell("kept_tree", Severity::info, path + "/" + name, kept_words);
            } else if (!known.contains(name.substr(restore_place.size()))) {
                if (auto removed = remove_orphan("orphan_temporary", folder, path, name,
                                                 "what a restore left of which nothing else is known");
                    !removed)
                    return removed;
            }
        }
        return {};
    }

    Result<void> finish_restores(const Guard& guard) {
        std::map<std::string, Recovered> done;
        if (options_.fixes && !pending_.empty()) {
            const auto recovered = recover_restores(repository_, guard);
            if (!recovered) return std::unexpected(recovered.error());
            for (const Recovered& each : *recovered) done.emplace(each.intent.restore_id, each);
        }
        for (const Pending& each : pending_) {
            WorktreeFinding& finding = tell("unfinished_restore", Severity::warning, each.path, each.description);
            const auto found = done.find(each.intent.restore_id);
            if (found == done.end()) continue;
            finding.is_fixed = true;
            finding.description += found->second.is_in_place ? ": finished, the new tree is in place"
                                                             : ": undone, nothing of the tree was changed";
        }
        return {};
    }

    Result<void> look_at_stages(const std::set<std::string>& known) {
        const auto stages = repository_.open_control(stages_folder);
        if (!stages) return {};
        const auto names = names_in(stages->get(), stages_folder);
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            if (known.contains(name)) continue;
            if (name.starts_with(kept_stage)) {
                tell("kept_tree", Severity::info, std::string(stages_folder) + "/" + name, kept_words);
                continue;
            }
            const auto unused = open_if_unused(stages->get(), name, name);
            if (unused && !*unused) continue;
            if (auto removed = remove_orphan("orphan_temporary", stages->get(), stages_folder, name,
                                             "what a restore left that never began");
                !removed)
                return removed;
        }
        return {};
    }

    Result<void> look_at_snapshots(const Guard&) {
        const auto folder = repository_.open_control("snapshots");
        if (!folder) return std::unexpected(folder.error());
        const auto names = names_in(folder->get(), "snapshots");
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const std::string path = "snapshots/" + name;
            if (name.starts_with(unfinished)) {
                const auto unused = open_if_unused(folder->get(), name, path);
                if (unused && !*unused) {
                    working_.insert(name.substr(unfinished.size()));
                    tell("snapshot_in_progress", Severity::info, path, "a process is writing or removing it");
                } else if (auto removed = remove_orphan("orphan_temporary", folder->get(), "snapshots", name,
                                                        "a snapshot that was never finished, or was being removed");
                           !removed) {
                    return removed;
                }
            } else if (!is_snapshot_id(name)) {
                tell("unknown_file", Severity::info, path, "not made by Holdfast");
            } else if (const auto read = repository_.descriptor(name)) {
                ++examination_.snapshots;
                snapshots_.push_back(*read);
            } else {
                tell(read.error().code == Errc::partial_snapshot ? "partial_snapshot" : "damaged_snapshot",
                     Severity::error, path, read.error().message, read.error().code);
            }
        }
        return {};
    }

    [[nodiscard]] bool is_published(const std::string& id) const {
        return std::ranges::find(snapshots_, id, &json::SnapshotDescriptor::snapshot_id) != snapshots_.end();
    }

    Result<void> look_at_intents(const Guard& guard) {
        const auto folder = repository_.open_control("intents");
        if (!folder) return std::unexpected(folder.error());
        const auto names = names_in(folder->get(), "intents");
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const std::string id = name.substr(0, name.size() - std::min(name.size(), json_suffix.size()));
            if (!is_snapshot_id(id) || working_.contains(id)) continue;
            if (is_published(id)) {
                WorktreeFinding& finding =
                    tell("unfinished_publish", Severity::warning, "intents/" + name,
                         "the snapshot is published, and its process died before it had told of that");
                if (!options_.fixes) continue;
                if (auto finished = roll_forward(guard, repository_); !finished) return finished;
                finding.is_fixed = true;
                finding.description += ": finished";
            } else if (auto removed = remove_orphan("orphan_intent", folder->get(), "intents", name,
                                                    "its snapshot was never finished");
                       !removed) {
                return removed;
            }
        }
        return {};
    }

    Result<void> look_at_descriptors(const Guard&) {
        const auto folder = repository_.open_control("descriptors");
        if (!folder) return std::unexpected(folder.error());
        const auto snapshots = repository_.open_control("snapshots");
        if (!snapshots) return std::unexpected(snapshots.error());
        const auto names = names_in(folder->get(), "descriptors");
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const std::string id = name.substr(0, name.size() - std::min(name.size(), json_suffix.size()));
            struct stat facts{};
            if (!is_snapshot_id(id) || working_.contains(id) ||
                fstatat(snapshots->get(), id.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
                continue;
            if (auto removed = remove_orphan("orphan_descriptor", folder->get(), "descriptors", name,
                                             "there is no snapshot to it: it was never finished, or was being removed");
                !removed)
                return removed;
        }
        return {};
    }

    /// Files that were being written. One that is young may have a writer who does not need the guard.
    Result<void> look_at_temporaries(const Guard&) {
        for (const std::string& name : {std::string("."), std::string("descriptors"), std::string("intents")}) {
            const auto folder = repository_.open_control(name);
            if (!folder) return std::unexpected(folder.error());
            const auto names = names_in(folder->get(), name);
            if (!names) return std::unexpected(names.error());
            for (const std::string& each : *names) {
                if (!each.starts_with(unfinished) || is_being_written(folder->get(), each)) continue;
                if (auto removed = remove_orphan("orphan_temporary", folder->get(), name, each,
                                                 "a file that was being written when its process died");
                    !removed)
                    return removed;
            }
        }
        return {};
    }

    [[nodiscard]] bool is_being_written(int folder, const std::string& name) const {
        struct stat facts{};
        if (fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return true;
        const auto now = repository_.clock().wall().time_since_epoch();
        return now - std::chrono::seconds{facts.st_mtim.tv_sec} < std::chrono::minutes{1};
    }

    Result<void> look_at_worktrees() {
        const auto registry = repository_.registry();
        if (!registry) return std::unexpected(registry.error());
        for (const WorktreeRow& row : registry->worktrees) {
            if (const auto folder = repository_.open_worktree(row.worktree_id); !folder)
                tell("worktree_missing", Severity::error, row.worktree_id, folder.error().message);
            if (row.head.empty()) continue;
            if (const auto head = repository_.descriptor(row.head); !head)
                tell("head_missing", Severity::error, row.worktree_id,
                     fmt::format("its head {} cannot be used: {}", row.head, head.error().message), head.error().code);
            if (row.is_shared)
                tell("shared_worktree", Severity::info, row.worktree_id,
                     "it is shared, a high risk: nothing keeps its writers apart");
        }
        worktrees_ = registry->worktrees;
        return {};
    }

    void look_at_leases() {
        if (options_.locks == nullptr) return;
        for (const WorktreeRow& row : worktrees_) {
            const LockName name = lock_of(row.worktree_id);
            const Deadline soon = Deadline::in(repository_.clock(), patience);
            const auto lock = options_.locks->inspect(name, soon);
            if (!lock) {
                tell("lock_unreadable", Severity::error, "locks", lock.error().message, lock.error().code);
                continue;
            }
            if (lock->state != LockState::expired || !lock->lease) continue;
            WorktreeFinding& finding =
                tell("expired_lease", Severity::info, "locks",
                     fmt::format("the lease of {} on {} has run out", printable(lock->lease->holder.text),
                                 printable(row.worktree_id)));
            if (!options_.fixes) continue;
            if (options_.locks->apply_one(Expire{name, lock->lease->lock_id}, soon)) {
                finding.is_fixed = true;
                finding.description += ": ended; its token stays used";
            }
        }
    }

    void look_at_audit() {
        const auto verified = verify_audit(repository_.control_fd());
        if (verified)
            examination_.events = *verified;
        else
            tell("audit_chain_broken", Severity::error, audit_file, verified.error().message, verified.error().code);
    }

    Result<void> verify_payloads() {
        for (const json::SnapshotDescriptor& descriptor : snapshots_) {
            const std::string path = "snapshots/" + descriptor.snapshot_id;
            const auto snapshot = SnapshotReader::open(repository_, descriptor);
            // Pruned since it was listed.
            if (!snapshot && snapshot.error().code == Errc::lock_not_held) continue;
            if (!snapshot) {
                tell("damaged_snapshot", Severity::error, path, snapshot.error().message, snapshot.error().code);
                continue;
            }
            const auto verified =
                verify_snapshot(*snapshot, options_.stop, [&](const Entry& entry, const Error& error) {
                    tell("payload_hash_mismatch", Severity::error,
                         fmt::format("{}/{}/{}", path, payload_folder, entry.path), error.message, error.code);
                });
            if (options_.stop.stop_requested()) return fail(Errc::lock_expired, "stopped before all was verified");
            if (!verified)
                tell("damaged_snapshot", Severity::error, path, verified.error().message, verified.error().code);
            else
                examination_.verified += *verified;
            if (options_.progress) options_.progress(descriptor.snapshot_id, examination_.verified);
        }
        if (examination_.verified == 0)
            tell("nothing_verified", Severity::error, "snapshots",
                 "0 objects were verified, which says nothing about this repository");
        return {};
    }

    struct Pending {
        std::string path{};
        std::string description{};
        json::RestoreIntent intent{};
    };

    const Repository& repository_;
    const DoctorOptions& options_;
    json::WorktreeExamination examination_{};
    std::vector<Pending> pending_{};
    std::vector<json::SnapshotDescriptor> snapshots_{};
    std::set<std::string> working_{};  ///< Ids that a process is at work on.
    std::vector<WorktreeRow> worktrees_{};
};

}  // namespace

Result<json::WorktreeExamination> examine(const Repository& repository, const DoctorOptions& options) {
    return Doctor(repository, options).run();
}

const std::vector<std::string>& runtime_state() {
    static const std::vector<std::string> paths{".holdfast/locks", ".holdfast/guard", ".holdfast/intents",
                                                ".holdfast/restores", ".holdfast/snapshots/.tmp-*"};
    return paths;
}

}  // namespace holdfast::guards::worktree
