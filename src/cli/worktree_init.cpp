// `holdfast worktree init` and `list`: which folders a repository has.
#include "cli/command.hpp"
#include "cli/worktree.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr Option mode_option{{"mode", Takes::one, "exclusive", "exclusive|shared", From::environment},
                             '\0',
                             "exclusive|shared",
                             "One writer at a time; or no such rule, which is a high risk."};

Result<int> run_init(Context& context) {
    const auto id = trees::worktree_id_of(context.line.words.empty() ? "main" : context.line.words.front());
    if (!id) return std::unexpected(id.error());
    const auto repository = trees::Repository::create(".", context.clock);
    if (!repository) return std::unexpected(repository.error());
    // A place that cannot keep a lock's promise is refused now, and not by the first snapshot.
    if (const auto store = lock_store_of(context, *repository); !store) return std::unexpected(store.error());
    const auto guard = repository->guard(context.soon());
    if (!guard) return std::unexpected(guard.error());
    const auto row =
        repository->add_worktree(*guard, *id, context.settings.text(mode_option) == "shared", context.holder().text);
    if (!row) return std::unexpected(row.error());
    if (context.out.style().json)
        context.out.document(json::worktree(*row, path_of(*repository, *id)).done());
    else
        context.out.note(fmt::format("worktree {} is registered in {}", shown(*row), printable(repository->root())));
    return 0;
}

Result<int> run_list(Context& context) {
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto registry = repository->registry();
    if (!registry) return std::unexpected(registry.error());
    if (context.out.style().json) {
        std::vector<json::Value> items;
        for (const auto& row : registry->worktrees)
            items.push_back(json::worktree(row, path_of(*repository, row.worktree_id)).done());
        context.out.document(json::worktrees(items, registry->repository_id).done());
        return 0;
    }
    std::vector<Row> rows;
    for (const auto& row : registry->worktrees)
        rows.push_back({{printable(row.worktree_id), mode_words(row.is_shared), row.head.empty() ? "-" : row.head},
                        row.is_shared ? Colour::yellow : Colour::none});
    context.out.table({"WORKTREE", "MODE", "HEAD"}, rows);
    return 0;
}

constexpr std::array init_words{Word{"DIR", Word::Need::optional}};
constexpr std::array init_options{mode_option, opt::holder};

}  // namespace

constinit const Command worktree_init_command{
    "worktree init",
    "",
    "Register a folder whose state can be kept in snapshots",
    "Run in the folder that is to be the repository: makes .holdfast there, registers the folder DIR beside it (main "
    "by "
    "default), and makes that where it is missing. An exclusive worktree has one writer at a time, by the lock "
    "worktree/DIR in .holdfast/locks; a shared one has no such rule, and every output says so.\n\n"
    "Example: holdfast worktree init site",
    init_words,
    init_options,
    run_init};

constinit const Command worktree_list_command{
    "worktree list",
    "",
    "List the worktrees of this repository",
    "Their names, modes and newest snapshots.\n\nExample: holdfast worktree list",
    {},
    {},
    run_list};

}  // namespace holdfast::cli
