// `holdfast worktree restore`: a snapshot becomes a new worktree, or takes the place of one that is there.
#include "cli/command.hpp"
#include "cli/progress_line.hpp"
#include "cli/worktree_lock.hpp"
#include "guards/worktree/restore.hpp"
#include "guards/worktree/snapshot.hpp"
#include "json/worktree_report.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace holdfast::cli {
namespace {

constexpr Option to_option{{"to", Takes::one, "", "", From::command_line},
                           '\0',
                           "DIR",
                           "The new worktree; by default restore- and the end of the snapshot's id."};
constexpr Option in_place_option{
    {"inplace", Takes::nothing, "", "", From::command_line}, '\0', "", "Replace the tree of the worktree instead."};
constexpr Option allow_shared_option{{"allow-shared", Takes::nothing, "", "", From::command_line},
                                     '\0',
                                     "",
                                     "With --inplace, also where nothing keeps other writers out."};
constexpr Option dry_run_option{{"dry-run", Takes::nothing, "", "", From::command_line},
                                '\0',
                                "",
                                "With --inplace: only list what would be added, changed and deleted."};

std::string short_id(const std::string& id) { return id.substr(id.find('-') + 1); }

/// PATH, as the manifest of a snapshot has it.
Result<std::string> path_asked_for(const Context& context) {
    if (context.line.words.size() < 2) return std::string();
    std::string path = context.line.words[1];
    while (path.starts_with("./")) path.erase(0, 2);
    while (path.ends_with('/')) path.pop_back();
    const std::string steps = "/" + path + "/";
    if (path.empty() || path.starts_with('/') || steps.find("/../") != std::string::npos ||
        steps.find("/./") != std::string::npos || steps.find("//") != std::string::npos)
        return fail(Errc::usage, "PATH is the path of a file or folder from the root of the worktree");
    return path;
}

class RestoreProgress {
public:
    RestoreProgress(const Context& context, std::uint64_t entries)
        : line_(context.out.style()), clock_(context.clock), entries_(std::max<std::uint64_t>(entries, 1)) {}

    void show(std::uint64_t done, const trees::CopyFacts& facts) {
        const Boottime now = clock_.boottime();
        if (!began_) began_ = now;
        if (shown_ && now - *shown_ < std::chrono::milliseconds{100}) return;
        shown_ = now;
        const auto took = std::max(now - *began_, std::chrono::milliseconds{1});
        constexpr std::uint64_t width = 24;
        constexpr std::uint64_t mib = std::uint64_t{1} << 20;
        const auto filled = std::min(done * width / entries_, width);
        line_.show(fmt::format("restore [{:#<{}}{:.<{}}] {} of {} entries, {} MiB/s", "", filled, "", width - filled,
                               done, entries_,
                               facts.bytes_read * 1000 / mib / static_cast<std::uint64_t>(took.count())));
    }

private:
    ProgressLine line_;
    const Clock& clock_;
    const std::uint64_t entries_;
    std::optional<Boottime> began_{};
    std::optional<Boottime> shown_{};
};

json::RestoreReport report_of(const trees::RestoreOrder& order, const trees::RestoredTree& tree) {
    json::RestoreReport report;
    report.snapshot_id = order.snapshot.snapshot_id;
    report.worktree_id = order.worktree_id;
    report.path = order.path;
    report.entries = tree.entries;
    report.files = tree.files;
    report.bytes = tree.bytes;
    report.special = tree.special;
    return report;
}

void warn_of_special(const trees::RestoredTree& tree) {
    if (tree.special > 0)
        Output::warn(
            fmt::format("holdfast: warning: {} sockets or devices were recorded and are not made", tree.special));
}

Result<int> into_new(Context& context, const trees::Repository& repository, trees::RestoreOrder order) {
    const std::string to = context.settings.given(to_option) ? context.settings.text(to_option)
                                                             : "restore-" + short_id(order.snapshot.snapshot_id);
    const auto id = trees::worktree_id_of(to);
    if (!id) return std::unexpected(id.error());
    order.worktree_id = *id;
    return without_worktree_lock([&](std::stop_token stop) -> Result<int> {
        order.stop = std::move(stop);
        const auto restored = [&] {
            RestoreProgress progress(context, order.snapshot.entries);
            order.progress = [&](std::uint64_t done, const trees::CopyFacts& facts) { progress.show(done, facts); };
            return trees::restore_to_new(repository, order);
        }();
        if (!restored) return std::unexpected(restored.error());
        if (context.out.style().json) {
            context.out.document(json::restore_report(report_of(order, *restored)).done());
            return 0;
        }
        context.out.line(path_of(repository, order.worktree_id));
        warn_of_special(*restored);
        return 0;
    });
}

Result<int> preview(Context& context, const trees::Repository& repository, const trees::RestoreOrder& order) {
    std::vector<json::PathChange> changes;
    auto compared =
        trees::preview_in_place(repository, order, [&](const trees::Difference& difference) -> Result<void> {
            if (context.out.style().json)
                changes.push_back({difference.entry.path, std::string(name_of(difference.change))});
            else
                context.out.line(line_of(difference));
            return {};
        });
    if (!compared) return std::unexpected(compared.error());
    if (context.out.style().json) context.out.document(json::path_changes(changes).done());
    return 0;
}

/// What `restore --inplace` says when it is done.
void tell(Context& context, const trees::RestoreOrder& order, const trees::InPlaceTerms& terms,
          const trees::InPlaceRestored& done) {
    if (context.out.style().json) {
        json::RestoreReport report = report_of(order, done.tree);
        report.is_in_place = true;
        report.undo_id = terms.undo_id;
        report.carried_over = done.carried_over;
        report.kept = done.kept;
        report.processes = done.processes;
        context.out.document(json::restore_report(report).done());
        return;
    }
    context.out.line(fmt::format("{} is {} again; the way back: holdfast worktree restore {} --inplace",
                                 printable(order.worktree_id), order.snapshot.snapshot_id, terms.undo_id));
    warn_of_special(done.tree);
    if (!done.kept.empty())
        Output::warn(fmt::format("holdfast: warning: the old tree is kept in {}: {}", printable(done.kept),
                                 printable(done.kept_why)));
    for (const std::string& process : done.processes)
        Output::warn(
            fmt::format("holdfast: warning: process {} still uses the old tree; it sees nothing of the new "
                        "one until it enters the folder again",
                        process));
}

Result<int> in_place(Context& context, const trees::Repository& repository, const trees::WorktreeRow& row,
                     trees::RestoreOrder order) {
    order.worktree_id = row.worktree_id;
    if (context.settings.on(dry_run_option)) return preview(context, repository, order);
    if (row.is_shared && !context.settings.on(allow_shared_option))
        return fail(Errc::usage, fmt::format("{} is shared, so nothing keeps other writers out while it is replaced; "
                                             "--allow-shared does it all the same",
                                             printable(row.worktree_id)));
    const auto work = [&](const trees::Claim* claim, Store* store, std::stop_token stop) -> Result<int> {
        {
            // What an earlier restore left is finished before a snapshot is taken of it.
            const auto guard = repository.guard(context.soon());
            if (!guard) return std::unexpected(guard.error());
            if (auto recovered = trees::recover_restores(repository, *guard); !recovered)
                return std::unexpected(recovered.error());
        }
        trees::SnapshotOptions before;
        before.message = "before restore of " + order.snapshot.snapshot_id;
        before.actor = context.holder().text;
        before.stop = stop;
        if (claim != nullptr) before.claim = *claim;
        before.store = store;
        const auto undo = trees::take_snapshot(repository, row.worktree_id, before);
        if (!undo) return std::unexpected(undo.error());
        trees::InPlaceTerms terms;
        terms.holder_id = before.actor;
        terms.undo_id = undo->descriptor.snapshot_id;
        if (claim != nullptr) {
            terms.token = claim->token.value;
            terms.lock_id = claim->lock_id.text();
        }
        terms.check = [&](const trees::Guard& guard) -> Result<void> {
            const auto registry = repository.registry();
            if (!registry) return std::unexpected(registry.error());
            const auto* now = trees::find_row(*registry, row.worktree_id);
            if (now == nullptr) return fail(Errc::usage, "the worktree is not registered any more");
            if (stop.stop_requested()) return fail(Errc::lock_expired, "stopped before anything was changed");
            if (claim == nullptr) return {};
            return trees::expect_current(guard, repository, *now, *claim, *store, context.soon());
        };
        order.stop = stop;
        const auto done = [&] {
            RestoreProgress progress(context, order.snapshot.entries);
            order.progress = [&](std::uint64_t entries, const trees::CopyFacts& facts) {
                progress.show(entries, facts);
            };
            return trees::restore_in_place(repository, order, terms);
        }();
        if (!done && claim != nullptr && done.error().code != Errc::fencing_mismatch &&
            trees::was_overtaken(repository, row.worktree_id, *claim))
            return fail(Errc::fencing_mismatch, "a newer holder has taken the worktree over: " + done.error().message);
        if (!done) return std::unexpected(done.error());
        tell(context, order, terms, *done);
        return 0;
    };
    if (row.is_shared)
        return without_worktree_lock([&](std::stop_token stop) { return work(nullptr, nullptr, std::move(stop)); });
    return under_worktree_lock(context, repository, row, [&](const WorktreeLease& lease) {
        return work(&lease.claim, &lease.store, lease.stop);
    });
}

Result<int> run(Context& context) {
    const bool is_in_place = context.settings.on(in_place_option);
    if (is_in_place && context.settings.given(to_option))
        return fail(Errc::usage, "--inplace replaces a worktree that is there, and --to names a new one: not both");
    if (!is_in_place && (context.settings.on(dry_run_option) || context.settings.on(allow_shared_option)))
        return fail(Errc::usage, "--dry-run and --allow-shared are for --inplace");
    auto path = path_asked_for(context);
    if (!path) return std::unexpected(path.error());
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    auto snapshot = repository->snapshot_named(context.line.words.front());
    if (!snapshot) return std::unexpected(snapshot.error());
    trees::RestoreOrder order;
    order.snapshot = *std::move(snapshot);
    order.path = *std::move(path);
    order.actor = context.holder().text;
    return is_in_place ? in_place(context, *repository, *row, std::move(order))
                       : into_new(context, *repository, std::move(order));
}

constexpr std::array words{Word{"ID"}, Word{"PATH", Word::Need::optional}};
constexpr std::array options{to_option,   in_place_option, dry_run_option, allow_shared_option, opt::worktree,
                             opt::ttl,    opt::wait,       opt::no_wait,   opt::max_hold,       opt::operation,
                             opt::holder, opt::user,       opt::if_held};

}  // namespace

constinit const Command worktree_restore_command{
    "worktree restore",
    "",
    "Make a snapshot a worktree again",
    "Copies the snapshot, or only PATH of it, into a new worktree, and compares every byte with its hash: "
    "E_PAYLOAD_HASH_MISMATCH names a file that is not what was stored. That needs no lock.\n\n"
    "--inplace replaces the tree of the worktree, or PATH in it. It takes the lock, or joins the lease of the worktree "
    "run around it, takes a snapshot of what is there, and exchanges the trees in one step: before it nothing has "
    "changed. What .holdfastignore names stays as it is. A process that was stopped beyond its lease is refused with "
    "E_FENCING_MISMATCH. After a crash the next restore, or worktree doctor --fix, finishes what was begun.\n\n"
    "Examples: holdfast worktree restore 8c0ffee1\n"
    "          holdfast worktree restore 8c0ffee1 etc/site.conf --inplace",
    words,
    options,
    run};

}  // namespace holdfast::cli
