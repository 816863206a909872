#include "cli/command.hpp"

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

/// The only list of commands.
constexpr std::array all{
    &run_command,
    &acquire_command,
    &renew_command,
    &release_command,
    &transfer_command,
    &check_command,
    &status_command,
    &history_command,
    &watch_command,
    &unlock_command,
    &override_request_command,
    &override_approve_command,
    &override_deny_command,
    &override_list_command,
    &hold_command,
    &fence_protect_command,
    &fence_unprotect_command,
    &fence_status_command,
    &fence_bind_command,
    &migrate_up_command,
    &migrate_down_command,
    &migrate_status_command,
    &migrate_verify_command,
    &migrate_repair_command,
    &migrate_baseline_command,
    &migrate_new_command,
    &migrate_lint_command,
    &migrate_wait_command,
    &token_create_command,
    &token_revoke_command,
    &token_list_command,
    &worktree_init_command,
    &worktree_status_command,
    &worktree_run_command,
    &worktree_snapshot_command,
    &worktree_history_command,
    &worktree_info_command,
    &worktree_list_command,
    &worktree_restore_command,
    &worktree_diff_command,
    &worktree_ls_command,
    &worktree_prune_command,
    &worktree_doctor_command,
    &serve_command,
    &data_sync_command,
    &prune_command,
    &repair_command,
    &doctor_command,
    &bench_command,
    &init_command,
    &completion_command,
    &version_command,
    &help_command,
};

bool among(std::string_view words, std::string_view word) {
    while (!words.empty()) {
        const std::string_view first = words.substr(0, words.find(' '));
        if (first == word) return true;
        words.remove_prefix(std::min(first.size() + 1, words.size()));
    }
    return false;
}

std::string_view first_word(const Command& command) { return command.name.substr(0, command.name.find(' ')); }

}  // namespace

std::span<const Command* const> commands() { return all; }

const Command* find_command(std::string_view word, std::string_view verb) {
    const auto* found = std::ranges::find_if(all, [&](const Command* command) {
        if (verb.empty()) return command->name == word || among(command->aliases, word);
        return first_word(*command) == word && command->name != word && command->name.substr(word.size() + 1) == verb;
    });
    return found == all.end() ? nullptr : *found;
}

bool has_verbs(std::string_view word) {
    return std::ranges::any_of(
        all, [&](const Command* command) { return command->name != word && first_word(*command) == word; });
}

std::vector<const Option*> options_of(const Command& command) {
    std::vector<const Option*> options;
    for (const Option& option : command.options) options.push_back(&option);
    for (const Option& option : opt::common) options.push_back(&option);
    return options;
}

}  // namespace holdfast::cli
