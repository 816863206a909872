// `holdfast worktree status`, `history` and `info`: read-only, without the lock.
#include "cli/command.hpp"
#include "cli/show.hpp"
#include "cli/worktree.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>

namespace holdfast::cli {
namespace {

constexpr Option limit_option{
    {"limit", Takes::one, "100", "", From::environment}, '\0', "N", "At most so many, the newest."};

Result<int> run_status(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    const auto store = lock_store_of(context, *repository);
    if (!store) return std::unexpected(store.error());
    const auto lock = context.inspect(trees::lock_of(row->worktree_id));
    if (!lock) return std::unexpected(lock.error());
    const std::string path = path_of(*repository, row->worktree_id);
    if (context.out.style().json) {
        context.out.document(json::worktree_status(*row, path, *lock).done());
        return 0;
    }
    context.out.line(fmt::format("worktree   {}", printable(row->worktree_id)));
    context.out.line(fmt::format("mode       {}", mode_words(row->is_shared)));
    context.out.line(fmt::format("path       {}", printable(path)));
    context.out.line(fmt::format("head       {}", row->head.empty() ? "-" : row->head));
    context.out.line(fmt::format("lock       {}", sentence(*lock)));
    return 0;
}

std::string remarks(const json::SnapshotDescriptor& descriptor) {
    std::string words(json::name_of(descriptor.consistency));
    if (descriptor.consistency == json::Consistency::best_effort) words += ": not proved";
    if (descriptor.is_shared) words += ", shared: high risk";
    return words;
}

Result<int> run_history(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    const auto limit = context.settings.number(limit_option, 1'000'000);
    if (!limit) return std::unexpected(limit.error());
    auto all = repository->snapshots();
    if (!all) return std::unexpected(all.error());
    std::erase_if(*all, [&](const auto& each) { return each.worktree_id != row->worktree_id; });
    std::ranges::reverse(*all);
    if (all->size() > *limit) all->resize(*limit);
    if (context.out.style().json) {
        std::vector<json::Value> items;
        for (const auto& each : *all) items.push_back(json::snapshot_info(each).done());
        context.out.document(json::worktree_history(*row, items).done());
        return 0;
    }
    std::vector<Row> rows;
    for (const auto& each : *all) {
        const bool is_risky = each.is_shared || each.consistency == json::Consistency::best_effort;
        rows.push_back({{each.snapshot_id, remarks(each), to_rfc3339(each.created_at), std::to_string(each.files),
                         printable(each.message)},
                        is_risky ? Colour::yellow : Colour::none});
    }
    context.out.table({"SNAPSHOT", "CONSISTENCY", "AT", "FILES", "MESSAGE"}, rows);
    return 0;
}

Result<int> run_info(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    std::string asked = context.line.words.empty() ? row->head : context.line.words.front();
    if (asked.empty())
        return fail(Errc::lock_not_held, fmt::format("{} has no snapshot yet", printable(row->worktree_id)));
    const auto found = repository->snapshot_named(asked);
    if (!found) return std::unexpected(found.error());
    if (context.out.style().json) {
        context.out.document(json::snapshot_info(*found).done());
        return 0;
    }
    const auto line = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) context.out.line(fmt::format("{:<12} {}", name, printable(value)));
    };
    line("snapshot", found->snapshot_id);
    line("worktree", found->worktree_id);
    line("parent", found->parent_id);
    line("at", to_rfc3339(found->created_at));
    line("message", found->message);
    line("consistency", remarks(*found));
    line("holder", found->holder_id);
    if (!found->lock_id.empty()) line("token", std::to_string(found->token));
    line("files", fmt::format("{} ({} MiB), {} entries", found->files, found->bytes >> 20, found->entries));
    if (found->special > 0) line("not copied", fmt::format("{} sockets and devices", found->special));
    if (found->excluded > 0) line("left out", fmt::format("{} by the exclusion list", found->excluded));
    line("engine", found->engine);
    return 0;
}

constexpr std::array one_worktree{opt::worktree};
constexpr std::array history_options{opt::worktree, limit_option};
constexpr std::array info_words{Word{"ID", Word::Need::optional}};

}  // namespace

constinit const Command worktree_status_command{
    "worktree status",
    "",
    "Who may write to a worktree, and what its newest snapshot is",
    "With --json, the lock has the fields lock_id, worktree_id, holder_id, created_at, last_renewed_at, "
    "lease_expires_at and fencing_token.\n\nExample: holdfast worktree status --json",
    {},
    one_worktree,
    run_status};

constinit const Command worktree_history_command{
    "worktree history",
    "",
    "List the snapshots of a worktree, the newest first",
    "Finished ones only. Those that nobody has proved to be of one moment are marked.\n\n"
    "Example: holdfast worktree history --limit 10",
    {},
    history_options,
    run_history};

constinit const Command worktree_info_command{
    "worktree info",
    "",
    "Everything about one snapshot",
    "Of the newest of the worktree, unless another is named, by its id or as much of it as tells it from others.\n\n"
    "Example: holdfast worktree info 1763511900123",
    info_words,
    one_worktree,
    run_info};

}  // namespace holdfast::cli
