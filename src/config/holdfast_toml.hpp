#pragma once

#include "client/policy.hpp"
#include "holdfast/error.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::config {

/// One key of the configuration, as text; a truth value is `on` or `off`.
struct ConfigEntry {
    std::vector<std::string> values{};
    std::size_t line = 0;
};

/// One `[[data.table]]`.
struct DataTable {
    std::string name{};
    std::string strategy{};          ///< As it is written.
    std::vector<std::string> key{};  ///< Empty if it is not there.
    std::size_t line = 0;
};

struct Config {
    std::string path{};
    std::vector<client::Policy> policies{};                     ///< In the order of the file.
    std::vector<DataTable> data_tables{};                       ///< In the order of the file.
    std::map<std::string, ConfigEntry, std::less<>> entries{};  ///< By key: `max_hold`.
};

/// Reads the configuration: `named` if that is given, otherwise the first holdfast.toml upward from the
/// working directory, in the user's configuration folder, in /etc/holdfast. Absent when there is none. One that was not
/// named must be trustworthy: see Chosen::by_search.
///
/// Refused with `config` and the file's line: what cannot be read, is not TOML, or has a key that is not one of
/// `known_keys`, which is called only if there is a file. A misspelt key must not be passed over.
[[nodiscard]] Result<std::optional<Config>> read_config(const std::optional<std::string>& named,
                                                        std::vector<std::string> (*known_keys)());

/// The whole file, without the line end that editors leave. Refused with `config`.
[[nodiscard]] Result<std::string> read_secret(const std::string& path);

/// `text` with each `${file:PATH}` replaced by that file's content. A relative PATH counts from `folder`.
[[nodiscard]] Result<std::string> with_secrets(const std::string& text, const std::string& folder);

}  // namespace holdfast::config
