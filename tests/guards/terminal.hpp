#pragma once

#include "base/fd.hpp"
#include "cli/sandbox.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>

namespace holdfast::tests {

/// A program in a session of its own at a real terminal, of which the test has the keyboard and the screen.
class Terminal {
public:
    Terminal(const cli_test::Args& command, const cli_test::Environment& environment, const std::string& folder);
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal();  ///< Hangs up, and ends the program if it still runs.

    void type(std::string_view keys) const;

    /// Reads until the screen shows `text`. False if the program ends or a minute passes before.
    [[nodiscard]] bool shows(std::string_view text);
    /// What stands behind the first `start` on its line; empty if that line never comes to its end.
    [[nodiscard]] std::string rest_of_line(std::string_view start);
    /// Everything that was read so far.
    [[nodiscard]] const std::string& screen() const { return screen_; }
    /// The process group that has the keyboard.
    [[nodiscard]] pid_t foreground() const;

private:
    /// Reads what comes next. False if nothing does.
    [[nodiscard]] bool read_on();

    base::Fd keyboard_;
    pid_t pid_;
    std::string screen_;
};

constexpr std::string_view ctrl_c = "\x03";
constexpr std::string_view ctrl_z = "\x1a";

}  // namespace holdfast::tests
