#include "guards/run/family.hpp"

#include "values/small_file.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <memory>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

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

/// The entries of a folder of the kernel that are numbers.
std::vector<pid_t> numbers_in(const std::string& folder) {
    std::vector<pid_t> numbers;
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
    if (!opened) return numbers;
    while (const dirent* entry = readdir(opened.get())) {
        pid_t number = 0;
        const std::string_view digits = entry->d_name;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error == std::errc{} && end == digits.data() + digits.size()) numbers.push_back(number);
    }
    return numbers;
}

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::vector<ProcessLine> all_processes() {
    std::vector<ProcessLine> lines;
    for (const pid_t pid : numbers_in("/proc")) {
        ProcessLine line;
        line.pid = pid;
        // A process may end between the listing and the reading; then it does not count.
        if (parse_stat(small_file(folder_of(pid) + "/stat").value_or(""), line)) lines.push_back(std::move(line));
    }
    return lines;
}

/// A process whose first thread has ended looks like a zombie, although its other threads still run.
bool has_ended(const ProcessLine& line) {
    return line.state == 'Z' && numbers_in(folder_of(line.pid) + "/task").size() <= 1;
}

}  // namespace

bool processes_are_visible() { return access("/proc/self/stat", R_OK) == 0; }

bool has_children() {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool has_dead_child() {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

std::set<pid_t> children() {
    std::set<pid_t> found;
    if (!has_children()) return found;
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

std::vector<Relative> descendants(pid_t root, const std::set<pid_t>& except) {
    const auto lines = all_processes();
    std::set<pid_t> family{root};
    // Parents may be listed after their children, so repeat until no process is added.
    for (bool grew = true; grew;) {
        grew = false;
        for (const ProcessLine& line : lines)
            if (!except.contains(line.pid) && family.contains(line.parent)) grew |= family.insert(line.pid).second;
    }
    std::vector<Relative> living;
    for (const ProcessLine& line : lines)
        if (line.pid != root && family.contains(line.pid) && !has_ended(line)) living.push_back({line.pid, line.name});
    return living;
}

Family::Family(std::function<void(const std::string&)> notice)
    : notice_(std::move(notice)), visible_(processes_are_visible()), root_(getpid()) {}

void Family::look_below(pid_t root, std::set<pid_t> strangers) {
    root_ = root;
    strangers_ = std::move(strangers);
}

/// The processes that could not be signalled.
std::vector<Relative> Family::send(int signal) const {
    std::vector<Relative> refused;
    if (group_ != 0) ::kill(-group_, signal);
    for (Relative& relative : living())
        if (::kill(relative.pid, signal) != 0 && errno == EPERM) refused.push_back(std::move(relative));
    return refused;
}

void Family::signal(int signal) const { static_cast<void>(send(signal)); }

void Family::end_with(int signal) {
    for (const Relative& relative : send(signal)) {
        if (std::ranges::find(out_of_reach_, relative.pid, &Relative::pid) != out_of_reach_.end()) continue;
        out_of_reach_.push_back(relative);
        if (notice_)
            notice_(fmt::format("cannot end {} (pid {}), which runs as another user: it goes on without the lock",
                                relative.name, relative.pid));
    }
}

void Family::tell_to_end() {
    end_with(SIGTERM);
    signal(SIGCONT);
}

void Family::kill() { end_with(SIGKILL); }

bool Family::is_left() const {
    if (strangers_.empty()) return has_children();
    return std::ranges::any_of(children(), [&](pid_t pid) { return !strangers_.contains(pid); });
}

bool Family::has_anybody_within_reach() const {
    return std::ranges::any_of(living(), [&](const Relative& relative) {
        return std::ranges::find(out_of_reach_, relative.pid, &Relative::pid) == out_of_reach_.end();
    });
}

bool Family::is_out_of_reach() const {
    // In this order: a process that is not shown because it has died meanwhile is a dead child by then.
    return !has_anybody_within_reach() && is_left() && !has_dead_child();
}

std::vector<Relative> Family::left() const {
    auto shown = living();
    if (!shown.empty()) return shown;
    return {{0, visible_ ? "processes of another user, which /proc hides"
                         : "processes that cannot be named without /proc"}};
}

std::string names_of(const std::vector<Relative>& relatives) {
    std::vector<std::string> names;
    for (const Relative& relative : relatives)
        names.push_back(relative.pid == 0 ? relative.name
                                          : fmt::format("{} (pid {})", printable(relative.name), relative.pid));
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace holdfast::guards::run
