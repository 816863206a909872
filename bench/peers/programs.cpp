#include "peers/programs.hpp"

#include "peers/comparison.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::bench {
namespace {

[[noreturn]] void give_up(const std::string& why) {
    fmt::print(stderr, "bench: {}\n", why);
    std::exit(1);
}

}  // namespace

pid_t start(const std::vector<std::string>& command) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) give_up("cannot run " + command.front());
    return pid;
}

void expect_success(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) give_up(fmt::format("a program ended with {}", status));
}

double time_of(const std::vector<std::string>& command, int times) {
    std::vector<double> took;
    for (int i = 0; i < times; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        expect_success(start(command));
        took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    return quantile(std::move(took), 0.5);
}

pid_t fork_to(const std::function<void()>& work) {
    const pid_t pid = fork();
    if (pid < 0) give_up("cannot fork");
    if (pid > 0) return pid;
    work();
    _exit(0);
}

}  // namespace holdfast::bench
