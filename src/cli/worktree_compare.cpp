// `holdfast worktree diff` and `ls`: what is in snapshots, read without a lock.
#include "cli/command.hpp"
#include "cli/worktree.hpp"
#include "guards/worktree/diff.hpp"
#include "json/worktree_report.hpp"
#include "values/hex.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace holdfast::cli {
namespace {

/// So many lines are kept before they are written: memory does not grow with the tree.
constexpr std::size_t lines_at_once = 1000;

std::string_view type_of(trees::Kind kind) {
    switch (kind) {
        case trees::Kind::folder: return "folder";
        case trees::Kind::file: return "file";
        case trees::Kind::hard_link: return "hard_link";
        case trees::Kind::symlink: return "symlink";
        case trees::Kind::fifo: return "fifo";
        case trees::Kind::socket: return "socket";
        case trees::Kind::block_device: return "block_device";
        case trees::Kind::character_device: return "character_device";
    }
    return "";
}

Result<trees::SnapshotReader> snapshot_named(const trees::Repository& repository, const std::string& name) {
    auto descriptor = repository.snapshot_named(name);
    if (!descriptor) return std::unexpected(descriptor.error());
    return trees::SnapshotReader::open(repository, *std::move(descriptor));
}

/// Writes lines as they come.
class Lines {
public:
    explicit Lines(Output& out) : out_(out) {}
    Result<void> add(const std::string& line) {
        out_.line(line);
        if (++count_ % lines_at_once == 0 && out_.flush() != 0)
            return fail(Errc::store_unavailable, "standard output cannot be written");
        return {};
    }

private:
    Output& out_;
    std::size_t count_ = 0;
};

Result<int> run_diff(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    const auto from = snapshot_named(*repository, context.line.words.front());
    if (!from) return std::unexpected(from.error());
    const auto older = trees::entries_of(*from);
    if (!older) return std::unexpected(older.error());
    std::vector<json::PathChange> changes;
    Lines lines(context.out);
    const auto each = [&](const trees::Difference& difference) -> Result<void> {
        if (!context.out.style().json) return lines.add(line_of(difference));
        changes.push_back({difference.entry.path, std::string(name_of(difference.change))});
        return {};
    };
    Result<void> compared;
    if (context.line.words.size() > 1) {
        const auto to = snapshot_named(*repository, context.line.words[1]);
        if (!to) return std::unexpected(to.error());
        const auto newer = trees::entries_of(*to);
        if (!newer) return std::unexpected(newer.error());
        compared = trees::compare(**older, **newer, each);
    } else {
        const auto root = repository->open_worktree(row->worktree_id);
        if (!root) return std::unexpected(root.error());
        const auto exclusions = trees::Exclusions::of(root->get());
        if (!exclusions) return std::unexpected(exclusions.error());
        const auto newer = trees::entries_of(root->get(), {.exclusions = &*exclusions, .may_move = true});
        compared = trees::compare(**older, *newer, each);
    }
    if (!compared) return std::unexpected(compared.error());
    if (context.out.style().json) context.out.document(json::path_changes(changes).done());
    return 0;
}

/// Some file systems keep times that no calendar has: the nearest that can be written.
Instant shown_time(const trees::Moment& time) {
    constexpr std::int64_t first = -62'135'596'800;  // The year 1.
    constexpr std::int64_t last = 253'402'300'799;   // The end of the year 9999.
    return Instant{
        std::chrono::milliseconds{std::clamp(time.seconds, first, last) * 1000 + time.nanoseconds / 1'000'000}};
}

json::ListedEntry listed(const trees::Entry& entry) {
    json::ListedEntry shown;
    shown.path = entry.path.empty() ? "." : entry.path;
    shown.type = type_of(entry.kind);
    shown.mode = entry.mode;
    shown.owner = entry.owner;
    shown.group = entry.group;
    shown.size = entry.size;
    shown.mtime = shown_time(entry.mtime);
    shown.target = entry.target;
    if (entry.kind == trees::Kind::file) shown.sha256 = to_hex(entry.hash);
    return shown;
}

std::string in_words(const json::ListedEntry& entry) {
    return fmt::format("{:04o}  {:<8}  {:>12}  {}  {}{}", entry.mode, entry.type, entry.size, to_rfc3339(entry.mtime),
                       printable(entry.path), entry.target.empty() ? "" : " -> " + printable(entry.target));
}

Result<int> run_ls(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto snapshot = snapshot_named(*repository, context.line.words.front());
    if (!snapshot) return std::unexpected(snapshot.error());
    const auto entries = trees::entries_of(*snapshot);
    if (!entries) return std::unexpected(entries.error());
    std::vector<json::Value> items;
    Lines lines(context.out);
    for (;;) {
        const auto entry = (*entries)->next();
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) break;
        if (context.out.style().json)
            items.push_back(json::listed_entry(listed(**entry)).done());
        else if (auto added = lines.add(in_words(listed(**entry))); !added)
            return std::unexpected(added.error());
    }
    if (context.out.style().json)
        context.out.document(json::Object()
                                 .set("snapshot_id", json::Value::text(snapshot->descriptor().snapshot_id))
                                 .set("entries", json::Value::array(items))
                                 .done());
    return 0;
}

constexpr std::array diff_words{Word{"A"}, Word{"B", Word::Need::optional}};
constexpr std::array diff_options{opt::worktree};
constexpr std::array ls_words{Word{"ID"}};

}  // namespace

std::string line_of(const trees::Difference& difference) {
    const auto letter = [&] {
        switch (difference.change) {
            case trees::Change::added: return '+';
            case trees::Change::deleted: return '-';
            case trees::Change::content: return 'M';
            case trees::Change::metadata: return 'm';
            case trees::Change::type: return 'T';
        }
        return '?';
    }();
    return fmt::format("{} {}{}", letter, difference.entry.path.empty() ? "." : printable(difference.entry.path),
                       difference.entry.kind == trees::Kind::folder ? "/" : "");
}

constinit const Command worktree_diff_command{
    "worktree diff",
    "",
    "Show what tells two snapshots apart",
    "Compares snapshot A with snapshot B, or with the worktree as it is now. A line for each path: + added, - deleted, "
    "M "
    "other content, m other mode, owner, time or attributes, T another type. Of the worktree only files are read that "
    "may have changed.\n\nExample: holdfast worktree diff 8c0ffee1",
    diff_words,
    diff_options,
    run_diff};

constinit const Command worktree_ls_command{
    "worktree ls",
    "",
    "List what is in a snapshot",
    "Mode, type, size, time and path of every entry; with --json also owner and SHA-256.\n\n"
    "Example: holdfast worktree ls 8c0ffee1",
    ls_words,
    {},
    run_ls};

}  // namespace holdfast::cli
