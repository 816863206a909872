#include "json/worktree_report.hpp"

#include "holdfast/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::json {

bool WorktreeExamination::is_healthy() const {
    return std::ranges::all_of(
        findings, [](const WorktreeFinding& each) { return each.severity == Severity::info || each.is_fixed; });
}

std::string_view name_of(Severity severity) {
    switch (severity) {
        case Severity::info: return "info";
        case Severity::warning: return "warning";
        case Severity::error: return "error";
    }
    return "";
}

Object worktree_examination(const WorktreeExamination& examination, bool is_strict,
                            const std::vector<std::string>& runtime_state) {
    std::vector<Value> findings;
    for (const WorktreeFinding& each : examination.findings)
        findings.push_back(
            Object()
                .set("category", Value::text(each.category))
                .set("severity", Value::text(name_of(each.severity)))
                .set("path", Value::text_or_null(each.path))
                .set("description", Value::text(each.description))
                .set("code", each.severity == Severity::error ? Value::text(row_of(each.code).name) : Value())
                .set("fixed", Value::boolean(each.is_fixed))
                .done());
    return Object()
        .set("healthy", Value::boolean(examination.is_healthy()))
        .set("strict", Value::boolean(is_strict))
        .set("snapshots", Value::number(examination.snapshots))
        .set("verified", is_strict ? Value::number(examination.verified) : Value())
        .set("events", Value::number(examination.events))
        .set("findings", Value::array(findings))
        .set("runtime_state", Value::texts(runtime_state));
}

Object snapshots_pruned(std::string_view worktree_id, const std::vector<SnapshotDescriptor>& removed,
                        const std::vector<SnapshotKept>& kept, bool only_tell) {
    std::vector<Value> gone;
    for (const SnapshotDescriptor& each : removed) gone.push_back(snapshot_info(each).done());
    std::vector<Value> stays;
    for (const SnapshotKept& each : kept)
        stays.push_back(
            Object().set("snapshot_id", Value::text(each.snapshot_id)).set("why", Value::text(each.why)).done());
    return Object()
        .set("worktree_id", Value::text(worktree_id))
        .set("dry_run", Value::boolean(only_tell))
        .set("removed", Value::array(gone))
        .set("kept", Value::array(stays));
}

Object path_changes(const std::vector<PathChange>& changes) {
    std::vector<Value> added;
    std::vector<Value> changed;
    std::vector<Value> deleted;
    for (const PathChange& each : changes) {
        if (each.change == "added")
            added.push_back(Value::text(each.path));
        else if (each.change == "deleted")
            deleted.push_back(Value::text(each.path));
        else
            changed.push_back(
                Object().set("path", Value::text(each.path)).set("change", Value::text(each.change)).done());
    }
    return Object()
        .set("added", Value::array(added))
        .set("changed", Value::array(changed))
        .set("deleted", Value::array(deleted));
}

Object restore_report(const RestoreReport& report) {
    return Object()
        .set("restored", Value::text(report.snapshot_id))
        .set("worktree_id", Value::text(report.worktree_id))
        .set("path", Value::text_or_null(report.path))
        .set("in_place", Value::boolean(report.is_in_place))
        .set("entries", Value::number(report.entries))
        .set("files", Value::number(report.files))
        .set("bytes", Value::number(report.bytes))
        .set("special", Value::number(report.special))
        .set("undo_snapshot_id", Value::text_or_null(report.undo_id))
        .set("carried_over", Value::number(report.carried_over))
        .set("old_tree_kept_at", Value::text_or_null(report.kept))
        .set("processes_in_old_tree", Value::texts(report.processes));
}

Object listed_entry(const ListedEntry& entry) {
    return Object()
        .set("path", Value::text(entry.path))
        .set("type", Value::text(entry.type))
        .set("mode", Value::text(fmt::format("{:04o}", entry.mode)))
        .set("owner", Value::number(std::uint64_t{entry.owner}))
        .set("group", Value::number(std::uint64_t{entry.group}))
        .set("size", Value::number(entry.size))
        .set("mtime", Value::time(entry.mtime))
        .set("target", Value::text_or_null(entry.target))
        .set("sha256", Value::text_or_null(entry.sha256));
}

}  // namespace holdfast::json
