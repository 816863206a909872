#include "guards/run/family.hpp"

#include "values/small_file.hpp"

#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <memory>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

struct ProcessLine {
    pid_t pid = 0;
    pid_t parent = 0;
    char state = '?';
    std::string name;
};

/// `pid (name) state ppid …`, where the name may hold anything.
bool parse_stat(const std::string& stat, ProcessLine& line) {
    const auto open = stat.find('(');
    const auto close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close + 4 > stat.size()) return false;
    line.name = stat.substr(open + 1, close - open - 1);
    line.state = stat[close + 2];
    const char* digits = stat.data() + close + 4;
    return std::from_chars(digits, stat.data() + stat.size(), line.parent).ec == std::errc{};
}

std::vector<ProcessLine> all_processes() {
    std::vector<ProcessLine> lines;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
    if (!proc) return lines;
    while (const dirent* entry = readdir(proc.get())) {
        ProcessLine line;
        const std::string_view digits = entry->d_name;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line.pid);
        if (error != std::errc{} || end != digits.data() + digits.size()) continue;
        // A process may end between the listing and the reading; then it is no longer anybody's relative.
        if (parse_stat(small_file("/proc/" + std::string(digits) + "/stat").value_or(""), line))
            lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace

bool processes_are_visible() { return small_file("/proc/self/stat").has_value(); }

bool has_children() {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::set<pid_t> children() {
    std::set<pid_t> found;
    if (const auto listed = small_file("/proc/self/task/" + std::to_string(getpid()) + "/children")) {
        // Each number is followed by a space.
        const char* const end = listed->data() + listed->size();
        pid_t pid = 0;
        for (const char* next = listed->data(); next < end; ++next) {
            const auto [rest, error] = std::from_chars(next, end, pid);
            if (error != std::errc{}) break;
            found.insert(pid);
            next = rest;
        }
        return found;
    }
    // A kernel without that file.
    for (const ProcessLine& line : all_processes())
        if (line.parent == getpid()) found.insert(line.pid);
    return found;
}

std::vector<Relative> descendants(const std::set<pid_t>& except) {
    const auto lines = all_processes();
    std::set<pid_t> family{getpid()};
    // Parents may be listed after their children, so this goes round until nobody is added.
    for (bool grew = true; grew;) {
        grew = false;
        for (const ProcessLine& line : lines)
            if (!except.contains(line.pid) && family.contains(line.parent)) grew |= family.insert(line.pid).second;
    }
    std::vector<Relative> living;
    for (const ProcessLine& line : lines)
        if (line.pid != getpid() && line.state != 'Z' && family.contains(line.pid))
            living.push_back({line.pid, line.name});
    return living;
}

std::vector<Relative> marked_with(std::string_view mark) {
    std::vector<Relative> found;
    for (const ProcessLine& line : all_processes()) {
        if (line.pid == getpid() || line.state == 'Z') continue;
        const std::string environment =
            '\0' + small_file("/proc/" + std::to_string(line.pid) + "/environ").value_or("");
        const auto at = environment.find(std::string_view("\0HOLDFAST_RUN=", 14));
        // The marks of all runs around it: of a run inside a run, both watchdogs know the processes.
        if (at != std::string::npos && environment.substr(at, environment.find('\0', at + 1) - at).contains(mark))
            found.push_back({line.pid, line.name});
    }
    return found;
}

bool group_exists(pid_t group) { return kill(-group, 0) == 0 || errno != ESRCH; }

}  // namespace holdfast::guards::run
