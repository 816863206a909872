#include "sandbox.hpp"

#include "support/time_limit.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(const char* folder, char* const* argv, char* const* envp, int out, int err) {
    // Tests that are run in the background inherit ignored signals, which these tests are about.
    for (const int each : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) signal(each, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
        chdir(folder) != 0)
        _exit(250);
    execve(argv[0], argv, envp);
    _exit(251);
}

int status_of(int waited) { return WIFSIGNALED(waited) ? 128 + WTERMSIG(waited) : WEXITSTATUS(waited); }

}  // namespace

std::optional<Document> Document::parse(const std::string& text) {
    boost::json::error_code error;
    auto value = boost::json::parse(text, error);
    if (error) return std::nullopt;
    return Document(std::make_shared<const boost::json::value>(std::move(value)));
}

bool Document::contains(std::string_view pointer) const {
    boost::json::error_code error;
    return value_->find_pointer(pointer, error) != nullptr;
}

bool Document::has(std::string_view pointer) const {
    boost::json::error_code error;
    const auto* value = value_->find_pointer(pointer, error);
    return value != nullptr && !value->is_null();
}

std::string Document::text(std::string_view pointer) const {
    boost::json::error_code error;
    const auto* value = value_->find_pointer(pointer, error);
    if (value == nullptr) return "(absent)";
    return value->is_string() ? std::string(value->get_string()) : boost::json::serialize(*value);
}

std::int64_t Document::number(std::string_view pointer) const {
    boost::json::error_code error;
    const auto* value = value_->find_pointer(pointer, error);
    return value != nullptr && value->is_int64() ? value->get_int64() : -1;
}

bool Document::yes(std::string_view pointer) const { return text(pointer) == "true"; }

std::size_t Document::size(std::string_view pointer) const {
    boost::json::error_code error;
    const auto* value = value_->find_pointer(pointer, error);
    if (value == nullptr) return 0;
    if (value->is_array()) return value->get_array().size();
    return value->is_object() ? value->get_object().size() : 0;
}

Document Ended::json() const {
    auto document = Document::parse(out);
    EXPECT_TRUE(document) << "not one JSON document: " << out << "\nstandard error: " << err;
    return document ? *document : *Document::parse("{}");
}

Running::Running(pid_t pid, fs::path out, fs::path err) : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}

Running::Running(Running&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), out_(std::move(other.out_)), err_(std::move(other.err_)) {}

Running::~Running() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void Running::signal(int number) const { kill(pid_, number); }
bool Running::is_stopped() const {
    const std::string stat = content(fmt::format("/proc/{}/stat", pid_));
    return stat.find(") T ") != std::string::npos;
}

bool Running::has_pending(int number) const {
    const std::string status = content(fmt::format("/proc/{}/status", pid_));
    const auto at = status.find("ShdPnd:");
    const auto mask = at == std::string::npos ? 0 : std::stoull(status.substr(at + 7), nullptr, 16);
    return (mask >> (number - 1) & 1) != 0;
}

bool Running::has_open(const fs::path& path) const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid_), ignored))
        if (fs::read_symlink(entry.path(), ignored) == path) return true;
    return false;
}

std::string Running::out() const { return content(out_); }
std::string Running::err() const { return content(err_); }

Ended Running::wait() {
    if (!tests::ends_in_time(pid_)) {
        ADD_FAILURE() << tests::command_line_of(pid_) << "\ndid not end in time; it is killed. Standard error so far:\n"
                      << err();
        kill(pid_, SIGKILL);
    }
    int waited = 0;
    waitpid(std::exchange(pid_, 0), &waited, 0);
    return {status_of(waited), out(), err()};
}

Sandbox::Sandbox() : program(HOLDFAST_PROGRAM) {
    std::string name = (fs::temp_directory_path() / "holdfast-cli-XXXXXX").string();
    root = mkdtemp(name.data());
    work = root / "work";
    state = root / "state";
    fs::create_directories(work);
    fs::create_directories(root / "io");
    environment = {{"PATH", "/usr/bin:/bin"},
                   {"HOME", (root / "home").string()},
                   {"XDG_STATE_HOME", state.string()},
                   {"XDG_CONFIG_HOME", (root / "config").string()}};
    // A sanitizer's own settings must reach the program.
    for (const char* option : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
        if (const char* value = std::getenv(option)) environment.emplace(option, value);
}

Sandbox::~Sandbox() {
    std::error_code ignored;
    fs::permissions(root, fs::perms::owner_all, ignored);
    fs::remove_all(root, ignored);
}

Running Sandbox::spawn(const Args& command, const Environment& more) {
    Environment all = more;
    all.insert(environment.begin(), environment.end());
    std::vector<std::string> variables;
    for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    Args copied = command;
    std::vector<char*> argv;
    for (std::string& arg : copied) argv.push_back(arg.data());
    argv.push_back(nullptr);

    const fs::path out = root / "io" / fmt::format("{}.out", runs_);
    const fs::path err = root / "io" / fmt::format("{}.err", runs_++);
    const int out_fd = open(out.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const int err_fd = open(err.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const pid_t pid = fork();
    if (pid == 0) become(work.c_str(), argv.data(), envp.data(), out_fd, err_fd);
    close(out_fd);
    close(err_fd);
    return {pid, out, err};
}

Running Sandbox::start(const Args& args, const Environment& more) {
    Args command{program};
    command.insert(command.end(), args.begin(), args.end());
    return spawn(command, more);
}

Ended Sandbox::run(const Args& args, const Environment& more) { return start(args, more).wait(); }
Ended Sandbox::run_program(const Args& args, const Environment& more) { return spawn(args, more).wait(); }
Running Sandbox::start_program(const Args& args, const Environment& more) { return spawn(args, more); }

Ended Sandbox::run_on_terminal(const Args& args, const std::string& typed, Screen shown) {
    const int keyboard = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_TRUE(keyboard >= 0 && grantpt(keyboard) == 0 && unlockpt(keyboard) == 0);
    const std::string terminal = ptsname(keyboard);
    // Kept open, so that what was written can still be read when the program has ended.
    const int screen = open(terminal.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_EQ(::write(keyboard, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    std::string script = fmt::format(R"(exec "$0" "$@" <{})", terminal);
    if (shown != Screen::nothing) script += " 2>" + terminal;
    if (shown == Screen::all) script += " >" + terminal;
    Args command{"/usr/bin/timeout", "20", "/bin/sh", "-c", script, program};
    command.insert(command.end(), args.begin(), args.end());
    Ended ended = run_program(command);
    fcntl(keyboard, F_SETFL, O_NONBLOCK);
    std::string page(1 << 16, '\0');
    for (ssize_t size = 0; (size = read(keyboard, page.data(), page.size())) > 0;)
        ended.err.append(page, 0, static_cast<std::size_t>(size));
    close(screen);
    close(keyboard);
    return ended;
}

void Sandbox::write(const fs::path& path, std::string_view text) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    // Whatever the umask is: a configuration that others can write is refused.
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

std::map<std::string, std::string> Sandbox::files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        const std::string name = entry.path().lexically_relative(root).string();
        if (name.starts_with("io")) continue;
        const bool has_data = entry.is_regular_file() && !name.ends_with("-shm");
        files.emplace(name, has_data ? content(entry.path()) : "");
    }
    return files;
}

std::string full_program() { return HOLDFAST_FULL_PROGRAM; }

std::vector<std::string> stores() { return {"sqlite:locks.db", "file:locks"}; }

void moment() { std::this_thread::sleep_for(std::chrono::milliseconds{10}); }

}  // namespace holdfast::cli_test
