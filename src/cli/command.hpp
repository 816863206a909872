#pragma once

#include "cli/option.hpp"
#include "holdfast/error.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace holdfast::cli {

class Context;

/// One word after the command's name.
struct Word {
    enum class Need { required, optional };
    std::string_view name;  ///< `NAME`
    Need need = Need::required;
    std::string_view choices{};  ///< `bash|zsh|fish`: nothing else is accepted.
};

/// Whether what follows `--` is a command line of its own, or more words.
enum class Tail { words, command };

/// What a command loads, whatever its store is. The short program loads nothing, so it becomes the full one.
enum class Loads { nothing, yaml, daemon };

/// One command, as data. `holdfast help`, the parser and the completions read it; `run` does the work,
/// after everything that was given has been checked for its form.
struct Command {
    std::string_view name;     ///< `acquire`; with a verb `override request`.
    std::string_view aliases;  ///< Separated by spaces.
    std::string_view summary;  ///< One line, for the list of commands.
    std::string_view details;  ///< Paragraphs, for its own help and the manual page.
    std::span<const Word> words{};
    std::span<const Option> options{};  ///< Beside those that every command has.
    Result<int> (*run)(Context& context) = nullptr;
    Tail tail = Tail::words;
    Loads loads = Loads::nothing;
};

/// All commands, in the order of the help.
[[nodiscard]] std::span<const Command* const> commands();

/// By name or alias; null when there is none. `verb` is empty for a command without verbs.
[[nodiscard]] const Command* find_command(std::string_view word, std::string_view verb);
/// Whether commands begin with `word` and a verb: `override`.
[[nodiscard]] bool has_verbs(std::string_view word);

/// What the command takes: its own options, then the common ones.
[[nodiscard]] std::vector<const Option*> options_of(const Command& command);

extern const Command run_command;
extern const Command acquire_command;
extern const Command renew_command;
extern const Command release_command;
extern const Command transfer_command;
extern const Command check_command;
extern const Command status_command;
extern const Command history_command;
extern const Command watch_command;
extern const Command unlock_command;
extern const Command override_request_command;
extern const Command override_approve_command;
extern const Command override_deny_command;
extern const Command override_list_command;
extern const Command hold_command;
extern const Command fence_protect_command;
extern const Command fence_unprotect_command;
extern const Command fence_status_command;
extern const Command fence_bind_command;
extern const Command migrate_up_command;
extern const Command migrate_down_command;
extern const Command migrate_status_command;
extern const Command migrate_verify_command;
extern const Command migrate_repair_command;
extern const Command migrate_baseline_command;
extern const Command migrate_new_command;
extern const Command migrate_lint_command;
extern const Command migrate_wait_command;
extern const Command token_create_command;
extern const Command token_revoke_command;
extern const Command token_list_command;
extern const Command worktree_init_command;
extern const Command worktree_status_command;
extern const Command worktree_run_command;
extern const Command worktree_snapshot_command;
extern const Command worktree_history_command;
extern const Command worktree_info_command;
extern const Command worktree_list_command;
extern const Command worktree_restore_command;
extern const Command worktree_diff_command;
extern const Command worktree_ls_command;
extern const Command worktree_prune_command;
extern const Command worktree_doctor_command;
extern const Command serve_command;
extern const Command data_sync_command;
extern const Command prune_command;
extern const Command repair_command;
extern const Command doctor_command;
extern const Command bench_command;
extern const Command init_command;
extern const Command completion_command;
extern const Command version_command;
extern const Command help_command;

}  // namespace holdfast::cli
