#pragma once

#include "support/temp_folder.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Runs the examples of the documentation and compares what they print with what the page says.
///
/// The notation of a `console` block: a command follows `$ `, its further lines follow `> `, and what it
/// prints (both streams) comes below. `…` stands for any text within a line; a line that is only `…` stands for
/// any number of lines. `(exit 75)` below the output is the expected exit status; without it, 0.
namespace holdfast::docs {

struct Step {
    std::string command{};
    std::vector<std::string> expected{};
    int exit_status = 0;
};

/// Empty if the block does not begin with a command.
[[nodiscard]] std::optional<std::vector<Step>> steps_of(const std::vector<std::string>& lines);

/// Whether `line` is what `pattern` says.
[[nodiscard]] bool line_matches(std::string_view pattern, std::string_view line);
[[nodiscard]] bool output_matches(const std::vector<std::string>& patterns, const std::vector<std::string>& lines);

/// Where an example runs: an empty working directory, a home of its own, and `binary` first on the path.
class Sandbox {
public:
    explicit Sandbox(const std::filesystem::path& binary);

    /// The failure in words. Empty: nothing.
    [[nodiscard]] std::string run_script(const std::vector<std::string>& lines) const;
    [[nodiscard]] std::string run_session(const std::vector<std::string>& lines) const;

private:
    struct Ended {
        int status = 0;
        std::string output{};
    };
    [[nodiscard]] Ended bash(const std::string& script, bool stop_at_failure) const;

    tests::TempFolder folder_{};
};

}  // namespace holdfast::docs
