#include "support/process.hpp"

#include "support/time_limit.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace holdfast::tests {
namespace {

struct Pipe {
    base::Fd read_end;
    base::Fd write_end;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    // Close-on-exec, so that no other child keeps the pipe open.
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    return {base::Fd(ends[0]), base::Fd(ends[1])};
}

/// The part of a fork that is the child's. Never returns, and runs no destructor of the parent's objects.
[[noreturn]] void be_child(const Pipe& input, const Pipe& output, const std::function<int()>& work) {
    dup2(input.read_end.get(), STDIN_FILENO);
    dup2(output.write_end.get(), STDOUT_FILENO);
    // Forked children share every descriptor of the parent, the pipes of their brothers included.
    close_range(3, ~0U, 0);
    int status = 124;
    try {
        status = work();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(status);
}

}  // namespace

Process Process::fork(const std::function<int()>& work) {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) be_child(input, output, work);
    return {pid, std::move(input.write_end), std::move(output.read_end)};
}

Process Process::run(const std::vector<std::string>& command) {
    return fork([&]() -> int {
        std::vector<char*> arguments;
        for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments.front(), arguments.data());
        throw std::system_error(errno, std::generic_category(), "run " + command.front());
    });
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), input_(std::move(other.input_)), output_(std::move(other.output_)) {}

Process::~Process() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    reap();
}

ssize_t Process::next_output(char* buffer, std::size_t size, std::string_view awaited) const {
    if (!readable_in_time(output_.get())) give_up_on(awaited);
    return ::read(output_.get(), buffer, size);
}

void Process::give_up_on(std::string_view awaited) const {
    throw std::runtime_error(std::string(awaited) + " of process " + std::to_string(pid_) + " (" +
                             command_line_of(pid_) + ") did not come in time");
}

std::string Process::read_line() {
    std::string line;
    char letter = 0;
    while (next_output(&letter, 1, "a line") == 1 && letter != '\n') line += letter;
    return line;
}

std::string Process::read_all() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = next_output(buffer.data(), buffer.size(), "the end of its output")) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(got));
    return text;
}

void Process::send(int signal) const { ::kill(pid_, signal); }

Exit Process::wait() {
    if (!ends_in_time(pid_)) give_up_on("the end");
    return reap();
}

Exit Process::reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    pid_ = -1;
    if (WIFSIGNALED(status)) return {std::nullopt, WTERMSIG(status)};
    return {WEXITSTATUS(status), std::nullopt};
}

void wait_for_end_of_input() {
    char letter = 0;
    while (::read(STDIN_FILENO, &letter, 1) > 0) {
    }
}

void print_now(const std::string& text) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(123);
}

}  // namespace holdfast::tests
