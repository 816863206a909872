#include "process/traced.hpp"

#include "support/isolation.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <stdexcept>

namespace holdfast::tests {
namespace {

std::vector<std::string> under_strace(const std::vector<std::string>& options, const Call& call) {
    std::vector<std::string> command{"strace", "-f", "-qq"};
    command.insert(command.end(), options.begin(), options.end());
    const std::vector<std::string> program{HOLDFAST_CONTENDER, call.what,        call.url,
                                           call.name.text(),   call.as.reveal(), "3600000"};
    command.insert(command.end(), program.begin(), program.end());
    return command;
}

/// The question mark lets strace pass over calls that this processor does not have.
std::string all_of(const std::vector<std::string>& syscalls) {
    return fmt::format("trace=?{}", fmt::join(syscalls, ",?"));
}

/// What strace writes about a call that is granted.
std::vector<std::string> lines_of_trace(std::vector<std::string> options, const Call& call) {
    const TempFolder logs;
    const std::filesystem::path log = logs.path() / "trace";
    options.insert(options.begin(), {"-o", log.string()});
    Process traced = Process::run(under_strace(options, call));
    const auto answer = parse_line(traced.read_all());
    if (traced.wait() != Exit{.status = 0} || !answer || !answer->granted)
        throw std::runtime_error("strace cannot run the program, or the call was refused without any fault");
    std::vector<std::string> found;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) found.push_back(line);
    return found;
}

}  // namespace

bool can_trace() {
    static const bool can = can_run({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none"});
    return can;
}

const std::vector<std::string>& watched_syscalls() {
    static const std::vector<std::string> names{
        "openat", "write",  "pwrite64", "fsync",     "fdatasync", "rename",  "renameat", "renameat2", "link",
        "linkat", "unlink", "unlinkat", "ftruncate", "mkdir",     "mkdirat", "fcntl",    "close",     "utimensat"};
    return names;
}

std::vector<NthCall> calls_on(const std::filesystem::path& folder, const Call& call) {
    const std::regex entry(R"(^\d+\s+(\w+)\(.*)");
    std::map<std::string, int> counts;
    std::vector<NthCall> calls;
    bool touched = false;
    for (const std::string& line : lines_of_trace({"-e", all_of(watched_syscalls())}, call)) {
        std::smatch match;
        if (!std::regex_match(line, match, entry)) continue;
        const int number = ++counts[match[1]];
        // Before that it is the loader that opens and closes files.
        touched = touched || line.find(folder.string()) != std::string::npos;
        if (touched) calls.push_back({match[1], number});
    }
    return calls;
}

std::vector<std::string> synced_paths(const Call& call) {
    const std::regex entry(R"(^\d+\s+(?:fsync|fdatasync)\(\d+<(.*)>\).*)");
    std::vector<std::string> paths;
    for (const std::string& line : lines_of_trace({"-y", "-e", "trace=fsync,fdatasync"}, call)) {
        std::smatch match;
        if (std::regex_match(line, match, entry)) paths.push_back(match[1]);
    }
    return paths;
}

Process start_injected(const Call& call, const NthCall& at, const std::string& what, const std::filesystem::path& log) {
    const std::string injection = fmt::format("inject={}:{}:when={}", at.syscall, what, at.number);
    return Process::run(under_strace({"-o", log.string(), "-e", "trace=" + at.syscall, "-e", injection}, call));
}

Ending run_injected(const Call& call, const NthCall& at, const std::string& what) {
    Process process = start_injected(call, at, what);
    Ending ending;
    ending.answer = parse_line(process.read_all());
    ending.exit = process.wait();
    return ending;
}

void without_exceptions(const std::function<void()>& examine) {
    try {
        examine();
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
}

}  // namespace holdfast::tests
