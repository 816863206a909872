#pragma once

#include "base/fd.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace holdfast::tests {

/// How a process ended: with a status, or by a signal.
struct Exit {
    std::optional<int> status{};
    std::optional<int> signal{};

    [[nodiscard]] bool operator==(const Exit&) const = default;
};

/// A real child process with a pipe to its standard input and one from its standard output.
///
/// Destroying it without waiting kills it: no test leaves a process behind. What is waited for and does not come in
/// time is thrown, and fails the test.
class Process {
public:
    /// Runs a program. Throws if it cannot be started.
    [[nodiscard]] static Process run(const std::vector<std::string>& command);

    /// Forks, and runs `work` in the child, whose result is the exit status. `work` reads 0 and writes 1.
    /// The caller must have a single thread.
    [[nodiscard]] static Process fork(const std::function<int()>& work);

    Process(Process&& other) noexcept;
    Process& operator=(Process&&) = delete;
    ~Process();

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// The child sees the end of its input.
    void close_input() { input_.reset(); }
    /// Until the first newline or the end.
    [[nodiscard]] std::string read_line();
    /// Until the end, which comes when the child has closed its output or is gone.
    [[nodiscard]] std::string read_all();
    void send(int signal) const;
    /// Waits for the end.
    Exit wait();

private:
    Process(pid_t pid, base::Fd input, base::Fd output)
        : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

    /// What it writes next, up to `size` bytes.
    ssize_t next_output(char* buffer, std::size_t size, std::string_view awaited) const;
    [[noreturn]] void give_up_on(std::string_view awaited) const;
    Exit reap();

    pid_t pid_;  ///< -1 once it was waited for.
    base::Fd input_;
    base::Fd output_;
};

/// A process's own standard input until the end: how a forked child waits for the starting signal.
void wait_for_end_of_input();

/// All of `text` to standard output, unbuffered.
void print_now(const std::string& text);

}  // namespace holdfast::tests
