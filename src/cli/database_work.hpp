#pragma once

#include "cli/context.hpp"
#include "guards/sql/fenced_session.hpp"
#include "guards/sql/migrate/database.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Work on a SQL database under its lock, in a process that is ended before the lease is.
namespace holdfast::cli {

namespace opt {
inline constexpr Option lock{{"lock", Takes::one, "", "", From::command_line},
                             '\0',
                             "NAME",
                             "The lock; by default migrate/ and the number that the database was given at first use."};
inline constexpr Option dry_run{
    {"dry-run", Takes::nothing, "", "", From::environment}, '\0', "", "Show what would be done, and change nothing."};
}  // namespace opt

/// The databases that a command names, by their URLs. `usage` where none is named.
[[nodiscard]] Result<std::vector<std::string>> database_urls(const Context& context);
/// The database of a command. `usage` where none is named.
[[nodiscard]] Result<std::string> database_url(const Context& context);

/// What a command does to the database while it holds the lock, with what it needs to connect and to seal.
using DatabaseWork = std::function<Result<int>(guards::FencedSessionOptions session)>;

/// What the worker is told beside its lease: names of variables, and their values.
using WorkerVariables = std::map<std::string, std::string>;

/// Runs `work` under the lock of that database, in a process that is ended before the lease is: this command itself,
/// started once more by its supervisor. In that process, and under a `holdfast run` that holds the lock, the work is
/// done here.
[[nodiscard]] Result<int> under_lock(Context& context, const guards::migrate::Database& database,
                                     const DatabaseWork& work, const WorkerVariables& variables = {});

/// Whether this process is the one that `under_lock` started.
[[nodiscard]] bool is_worker();

/// This program with the command, its words and its flags, but for the flags `left_out`.
[[nodiscard]] std::vector<std::string> same_command(const Context& context,
                                                    std::initializer_list<std::string_view> left_out);

/// Shows messages to a person that waits.
[[nodiscard]] std::function<void(const std::string&)> notice_on(const Output& out);

}  // namespace holdfast::cli
