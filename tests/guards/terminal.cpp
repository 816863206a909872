#include "guards/terminal.hpp"

#include "support/time_limit.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace holdfast::tests {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

Terminal::Terminal(const cli_test::Args& command, const cli_test::Environment& environment, const std::string& folder) {
    cli_test::Args words = command;
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
    const auto argv = pointers(words);
    const auto envp = pointers(variables);
    int keyboard = -1;
    pid_ = forkpty(&keyboard, nullptr, nullptr, nullptr);
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
    if (pid_ == 0) {
        for (const int each : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) signal(each, SIG_DFL);
        if (chdir(folder.c_str()) == 0) execve(argv[0], argv.data(), envp.data());
        _exit(251);
    }
    keyboard_ = base::Fd(keyboard);
    fcntl(keyboard, F_SETFD, FD_CLOEXEC);
}

Terminal::~Terminal() {
    keyboard_.reset();
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void Terminal::type(std::string_view keys) const {
    if (write(keyboard_.get(), keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
        throw std::system_error(errno, std::generic_category(), "type");
}

bool Terminal::read_on() {
    std::array<char, 1024> buffer{};
    const ssize_t got = readable_in_time(keyboard_.get()) ? read(keyboard_.get(), buffer.data(), buffer.size()) : 0;
    screen_.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got > 0;
}

bool Terminal::shows(std::string_view text) {
    while (screen_.find(text) == std::string::npos)
        if (!read_on()) return false;
    return true;
}

std::string Terminal::rest_of_line(std::string_view start) {
    if (!shows(start)) return "";
    const std::size_t from = screen_.find(start) + start.size();
    while (screen_.find('\r', from) == std::string::npos)
        if (!read_on()) return "";
    return screen_.substr(from, screen_.find('\r', from) - from);
}

pid_t Terminal::foreground() const { return tcgetpgrp(keyboard_.get()); }

}  // namespace holdfast::tests
