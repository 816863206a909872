#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

/// The options of all commands, as data: parsing, help, the manual page, shell completion, environment
/// variables and configuration keys are all made from these.
namespace holdfast::cli {

enum class Takes {
    nothing,  ///< A switch.
    one,      ///< A value; the last one given counts.
    many,     ///< A value, and it may be repeated.
};

/// Where a value may come from besides the command line. A secret or a confirmation does not belong
/// into a configuration file.
enum class From { anywhere, environment, command_line };

struct Option {
    std::string_view name;  ///< `max-hold`: the flag `--max-hold`, HOLDFAST_MAX_HOLD, the key `max_hold`.
    char letter = '\0';
    Takes takes = Takes::nothing;
    std::string_view value{};  ///< What stands for the value in help: `D`.
    std::string_view help{};
    std::string_view fallback{};  ///< The default; for a value only.
    std::string_view choices{};   ///< `fail|skip`: nothing else is accepted.
    From from = From::anywhere;
};

/// `HOLDFAST_MAX_HOLD`.
[[nodiscard]] std::string variable_of(const Option& option);
/// `max_hold`.
[[nodiscard]] std::string key_of(const Option& option);
/// `-m, --reason T`.
[[nodiscard]] std::string spelling_of(const Option& option);
/// `choices`, split.
[[nodiscard]] std::vector<std::string_view> choices_of(const Option& option);

/// The options that mean the same in every command that has them.
namespace opt {
inline constexpr Option store{"store", 's', Takes::many, "URL",
                              "Where the locks live, such as sqlite:locks.db or file:/var/lib/locks."};
inline constexpr Option config{"config", '\0', Takes::one,       "F", "Read this configuration file and no other.",
                               "",       "",   From::environment};
inline constexpr Option json{"json", '\0', Takes::nothing, "", "Print exactly one JSON document, also on failure."};
inline constexpr Option quiet{"quiet", 'q', Takes::nothing, "", "Print only what was asked for."};
inline constexpr Option verbose{"verbose", 'v', Takes::nothing, "", "Say which configuration and store are used."};
inline constexpr Option no_color{"no-color", '\0', Takes::nothing, "", "No colours, as with NO_COLOR."};
inline constexpr Option conflict_exit_code{
    "conflict-exit-code", 'E', Takes::one, "N", "Exit status when somebody else holds the lock.", "75"};
/// Every command has these.
inline constexpr std::array common{store, config, json, quiet, verbose, no_color, conflict_exit_code};

inline constexpr Option ttl{"ttl", '\0', Takes::one, "D", "How long the lease lasts unless it is renewed.", "30s"};
inline constexpr Option wait{"wait", '\0', Takes::one, "D", "How long to wait in the queue: 0, 2m, forever.", "0"};
inline constexpr Option no_wait{"no-wait", 'n', Takes::nothing,    "", "The same as --wait 0.",
                                "",        "",  From::command_line};
inline constexpr Option max_hold{"max-hold", '\0', Takes::one, "D", "No renewal goes beyond this time from now."};
inline constexpr Option operation{"operation", '\0', Takes::one, "T", "What is being done under the lock."};
inline constexpr Option reason{"reason", 'm', Takes::one, "T", "Why, for whoever looks later."};
inline constexpr Option holder{"holder", '\0', Takes::one, "T", "Who does it; by default this process."};
inline constexpr Option user{"user", '\0', Takes::one, "T", "The person on whose behalf."};
inline constexpr Option lease{
    "lease",
    '\0',
    Takes::one,
    "L",
    "The lease, as acquire printed it. Better in HOLDFAST_LEASE: others can read a command line.",
    "",
    "",
    From::environment};
inline constexpr Option session{"session", '\0', Takes::nothing, "",
                                "Also bind the lock to a connection, where the store can."};
inline constexpr Option unless_held{"unless-held", '\0', Takes::many, "NAME", "Refuse while this other lock is held."};
inline constexpr Option if_held{
    "if-held", '\0',       Takes::one, "fail|skip", "When somebody else holds it: fail, or skip with exit status 0.",
    "fail",    "fail|skip"};
inline constexpr Option format{"format",
                               '\0',
                               Takes::one,
                               "text|sh|json",
                               "How to print the lease; sh is for eval, also when it fails.",
                               "text",
                               "text|sh|json",
                               From::environment};
inline constexpr Option yes{"yes", 'y', Takes::nothing, "", "Do not ask.", "", "", From::environment};
}  // namespace opt

}  // namespace holdfast::cli
