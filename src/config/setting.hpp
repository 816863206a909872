#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::config {

enum class Takes {
    nothing,  ///< A switch.
    one,      ///< A value; the last one given counts.
    many,     ///< A value, and it may be repeated.
};

/// Where a value may come from besides the command line. A secret or a confirmation does not belong into a
/// configuration file.
enum class From { anywhere, environment, command_line };

/// One thing that can be set.
struct Setting {
    std::string_view name;  ///< `max-hold`: the flag `--max-hold`, HOLDFAST_MAX_HOLD, the key `max_hold`.
    Takes takes = Takes::nothing;
    std::string_view fallback{};  ///< The default; for a value only.
    std::string_view choices{};   ///< `fail|skip`: nothing else is accepted.
    From from = From::anywhere;
    std::string_view section{};  ///< Of the configuration file: `server` for a key below `[server]`.
};

/// `HOLDFAST_MAX_HOLD`.
[[nodiscard]] std::string variable_of(const Setting& setting);
/// `max_hold`; with its section, `server.max_body`.
[[nodiscard]] std::string key_of(const Setting& setting);
/// `fail|skip`, split.
[[nodiscard]] std::vector<std::string_view> split_choices(std::string_view choices);

/// The settings that `Settings` itself understands.
namespace setting {
inline constexpr Setting store{"store", Takes::many};
inline constexpr Setting config{"config", Takes::one, "", "", From::environment};
inline constexpr Setting ttl{"ttl", Takes::one, "30s"};
inline constexpr Setting wait{"wait", Takes::one, "0"};
inline constexpr Setting no_wait{"no-wait", Takes::nothing, "", "", From::command_line};
inline constexpr Setting max_hold{"max-hold", Takes::one};
inline constexpr Setting lease{"lease", Takes::one, "", "", From::environment};
inline constexpr Setting session{"session"};
inline constexpr Setting unless_held{"unless-held", Takes::many};
inline constexpr Setting meta{"meta", Takes::many, "", "", From::environment};
inline constexpr Setting if_held{"if-held", Takes::one, "fail", "fail|skip"};
}  // namespace setting

}  // namespace holdfast::config
