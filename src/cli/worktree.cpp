#include "cli/worktree.hpp"

#include "values/text.hpp"

namespace holdfast::cli {

Result<trees::Repository> repository_of(const Context& context) { return trees::Repository::find(".", context.clock); }

Result<trees::WorktreeRow> worktree_of(const Context& context, const trees::Repository& repository) {
    return repository.worktree(context.settings.text(opt::worktree), ".");
}

Result<Store*> lock_store_of(Context& context, const trees::Repository& repository) {
    // One in the environment is for other locks.
    if (context.line.given.contains(opt::store.name))
        return fail(Errc::usage, "the locks of worktrees are in their repository; --store has no meaning here");
    return context.use_store(repository.store_url());
}

std::string shown(const trees::WorktreeRow& row) {
    return printable(row.worktree_id) + (row.is_shared ? " (shared: high risk)" : "");
}

std::string path_of(const trees::Repository& repository, const std::string& worktree_id) {
    return repository.root() + "/" + worktree_id;
}

std::string mode_words(bool is_shared) { return is_shared ? "shared (high risk)" : "exclusive"; }

}  // namespace holdfast::cli
