#pragma once

#include "cli/database_work.hpp"
#include "guards/sql/migrate/database.hpp"
#include "guards/sql/migrate/folder.hpp"
#include "guards/sql/migrate/placeholders.hpp"
#include "guards/sql/migrate/runner.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What the commands `holdfast migrate …` share.
namespace holdfast::cli {

namespace migrations = guards::migrate;

namespace opt {
inline constexpr Option dir{
    {"dir", Takes::one, "migrations", "", From::environment}, '\0', "D", "The folder with the migrations."};
/// A `database` of which there may be several.
inline constexpr Option databases{{"database", Takes::many, "", "", From::environment},
                                  '\0',
                                  "URL",
                                  "The SQL database; by default that of the locks. May be repeated."};
inline constexpr Option schema{{"schema", Takes::one, "", "", From::environment},
                               '\0',
                               "NAME",
                               "The schema to work in; in MySQL the database, in the place of the one of the URL."};
inline constexpr Option schemas_like{{"schemas-like", Takes::one, "", "", From::command_line},
                                     '\0',
                                     "PATTERN",
                                     "Every schema whose name is LIKE this; in MySQL every database."};
inline constexpr Option parallel{
    {"parallel", Takes::one, "4", "", From::environment}, '\0', "N", "How many databases or schemas at once."};
inline constexpr Option to_version{
    {"to", Takes::one, "", "", From::command_line}, '\0', "V", "No version beyond this one."};
inline constexpr Option out_of_order{
    {"allow-out-of-order"}, '\0', "", "Also run files whose number is below one that was applied."};
inline constexpr Option placeholder{
    {"placeholder", Takes::many}, '\0', "NAME=VALUE", "What stands in the place of ${NAME} in the files."};
}  // namespace opt

/// What a command does on one database.
using OnDatabase = std::function<Result<int>(Context& context, const migrations::Database& database)>;

/// Runs `work` on the one database of the command. Where the command names several, or schemas by a pattern, it runs
/// itself once for each of them and shows a table of what was done: the failure of one stops no other, and the exit
/// status is 83.
[[nodiscard]] Result<int> on_each_database(Context& context, const OnDatabase& work);

/// The folder, read and compared with its holdfast.sum.
[[nodiscard]] Result<migrations::Folder> folder_of(const Context& context);
[[nodiscard]] migrations::Placeholders placeholders_of(const Context& context);
/// `--to`, as a number.
[[nodiscard]] Result<std::optional<std::uint64_t>> version_asked_for(const Context& context);

/// What a command does to the database while it holds the lock. `runner` is connected and sealed.
using Work = std::function<Result<int>(migrations::Runner& runner)>;
/// `under_lock`, with a runner.
[[nodiscard]] Result<int> migrate_under_lock(Context& context, const migrations::Database& database, const Work& work);

/// `0007_create_users.sql`, for people.
[[nodiscard]] std::string label_of(const migrations::MigrationFile& file);

}  // namespace holdfast::cli
