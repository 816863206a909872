#pragma once

#include "config/setting.hpp"

#include <array>
#include <string>
#include <string_view>

/// The options of all commands, as data: parsing, help, the manual page, shell completion, environment
/// variables and configuration keys are all made from these.
namespace holdfast::cli {

using config::From;
using config::Takes;
namespace setting = config::setting;

/// A setting as it is written on a command line: the flag `--max-hold`.
struct Option : config::Setting {
    char letter = '\0';
    std::string_view value{};  ///< What stands for the value in help: `D`.
    std::string_view help{};
};

/// `-m, --reason T`.
[[nodiscard]] std::string spelling_of(const Option& option);

/// The options that mean the same in every command that has them.
namespace opt {
inline constexpr Option store{setting::store, 's', "URL",
                              "Where the locks live, such as sqlite:locks.db or file:/var/lib/locks."};
inline constexpr Option config{setting::config, '\0', "F", "Read this configuration file and no other."};
inline constexpr Option json{{"json"}, '\0', "", "Print exactly one JSON document, also on failure."};
inline constexpr Option quiet{{"quiet"}, 'q', "", "Print only what was asked for."};
inline constexpr Option verbose{{"verbose"}, 'v', "", "Say which configuration and store are used."};
inline constexpr Option no_color{{"no-color"}, '\0', "", "No colours, as with NO_COLOR."};
inline constexpr Option conflict_exit_code{
    {"conflict-exit-code", Takes::one, "75"}, 'E', "N", "Exit status when somebody else holds the lock."};
/// Every command has these.
inline constexpr std::array common{store, config, json, quiet, verbose, no_color, conflict_exit_code};

inline constexpr Option ttl{setting::ttl, '\0', "D", "How long the lease lasts unless it is renewed."};
inline constexpr Option wait{setting::wait, '\0', "D", "How long to wait in the queue: 0, 2m, forever."};
inline constexpr Option no_wait{setting::no_wait, 'n', "", "The same as --wait 0."};
inline constexpr Option max_hold{setting::max_hold, '\0', "D", "No renewal goes beyond this time from now."};
inline constexpr Option operation{{"operation", Takes::one}, '\0', "T", "What is being done under the lock."};
inline constexpr Option reason{{"reason", Takes::one}, 'm', "T", "Why, for whoever looks later."};
inline constexpr Option holder{{"holder", Takes::one}, '\0', "T", "Who does it; by default this process."};
inline constexpr Option user{{"user", Takes::one}, '\0', "T", "The person on whose behalf."};
inline constexpr Option lease{
    setting::lease, '\0', "L",
    "The lease, as acquire printed it. Better in HOLDFAST_LEASE: others can read a command line."};
inline constexpr Option session{setting::session, '\0', "", "Also bind the lock to this process, where the store can."};
inline constexpr Option unless_held{setting::unless_held, '\0', "NAME", "Refuse while this other lock is held."};
inline constexpr Option meta{setting::meta, '\0', "KEY=VALUE", "Attach this to the lease; may be repeated."};
inline constexpr Option if_held{setting::if_held, '\0', "fail|skip",
                                "When somebody else holds it: fail, or skip with exit status 0."};
inline constexpr Option database{{"database", Takes::one, "", "", From::environment},
                                 '\0',
                                 "URL",
                                 "The SQL database that is protected; by default that of the locks."};
inline constexpr Option fence{{"fence", Takes::many, "", "", From::environment},
                              '\0',
                              "URL",
                              "Seal this database before CMD begins: it then refuses earlier holders."};
inline constexpr Option format{{"format", Takes::one, "text", "text|sh|json", From::environment},
                               '\0',
                               "text|sh|json",
                               "How to print the lease; sh is for eval, also when it fails."};
inline constexpr Option no_lock{{"no-lock"}, '\0', "", "Run without a lock, with a warning."};
inline constexpr Option token_file{
    {"token-file", Takes::one}, '\0', "F", "The file that says who may do what through the daemon."};
inline constexpr Option yes{{"yes", Takes::nothing, "", "", From::environment}, 'y', "", "Do not ask."};
}  // namespace opt

}  // namespace holdfast::cli
