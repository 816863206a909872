#include "support/servers/server.hpp"

#include "base/fd.hpp"
#include "support/servers/loopback.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <iterator>
#include <netinet/in.h>
#include <pwd.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void give_up(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

/// The user of the servers: PostgreSQL refuses root, and the others should.
const passwd* server_user() {
    if (geteuid() != 0) return nullptr;
    const passwd* user = getpwnam("nobody");
    if (user == nullptr) throw std::runtime_error("there is no user nobody to run servers as");
    return user;
}

/// The child's part: everything between fork and exec.
[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         const std::filesystem::path& log, const passwd* user) {
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    // A group of its own, so that a signal can be sent to all of its processes, and none from the terminal.
    setpgid(0, 0);
    if (user != nullptr) {
        if (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0) _exit(125);
    }
    // After the change of user, which takes it back.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const std::string& setting : environment) {
        const auto equals = setting.find('=');
        setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
    }
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments.front(), arguments.data());
    _exit(127);
}

pid_t launch_as_server(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                       const std::filesystem::path& log) {
    const passwd* user = server_user();
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("pipe");
    const base::Fd at_exec(ends[0]);
    base::Fd until_exec(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) give_up("fork");
    if (pid == 0) become(command, environment, log, user);
    // Until it is the server, it has every socket of this process open, and no group of its own.
    until_exec = base::Fd();
    char none = 0;
    while (read(at_exec.get(), &none, 1) < 0 && errno == EINTR) continue;
    return pid;
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<pid_t> children_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    return {std::istream_iterator<pid_t>(in), {}};
}

/// `socket:[INODE]` of every process that listens on the port.
std::set<std::string> listeners_on(std::uint16_t port) {
    constexpr std::string_view listening = "0A";
    std::set<std::string> found;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream in(table);
        std::string line;
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::string number, here, there, state, queues, timer, retries, user, timeout, inode;
            words >> number >> here >> there >> state >> queues >> timer >> retries >> user >> timeout >> inode;
            const auto colon = here.rfind(':');
            if (state == listening && std::stoul(here.substr(colon + 1), nullptr, 16) == port)
                found.insert("socket:[" + inode + "]");
        }
    }
    return found;
}

bool has_one_of(pid_t pid, const std::set<std::string>& sockets) {
    std::error_code gone;
    for (const auto& fd : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone))
        if (sockets.contains(std::filesystem::read_symlink(fd.path(), gone).string())) return true;
    return false;
}

}  // namespace

bool has_halted(pid_t pid) {
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
        std::ifstream file(thread.path() / "stat");
        std::string text;
        std::getline(file, text);
        const auto name_end = text.rfind(')');
        if (name_end != std::string::npos &&
            std::string_view("TtZX").find(text[name_end + 2]) == std::string_view::npos)
            return false;
    }
    return true;
}

ServerFolder::ServerFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-server-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) give_up("mkdtemp " + name);
    path_ = name;
    if (const passwd* user = server_user(); user != nullptr && chown(name.c_str(), user->pw_uid, user->pw_gid) != 0)
        give_up("chown " + name);
}

ServerFolder::~ServerFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
}

std::string ServerFolder::write(const std::string& name, const std::string& content) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path) << content;
    chmod(path.c_str(), 0600);
    if (const passwd* user = server_user(); user != nullptr && chown(path.c_str(), user->pw_uid, user->pw_gid) != 0)
        give_up("chown " + path);
    return path;
}

Server::Server(Plan plan, std::shared_ptr<const ServerFolder> folder, std::uint16_t port)
    : plan_(std::move(plan)), folder_(std::move(folder)), port_(port) {
    start();
}

Server::~Server() { kill(); }

void Server::launch() { pid_ = launch_as_server(plan_.command, plan_.environment, folder_->path() / "server.log"); }

void Server::start() {
    // Processes that a killed server had started, as PostgreSQL has them, go a moment after it. Until then it does
    // not start again.
    const auto give_up_at = std::chrono::steady_clock::now() + 10s;
    while (was_killed_ && std::chrono::steady_clock::now() < give_up_at) {
        launch();
        if (await_ready_or_end()) return;
        std::this_thread::sleep_for(20ms);
    }
    launch();
    if (!await_ready_or_end()) throw std::runtime_error(plan_.name + " ended while it started:\n" + end_of_log());
}

bool Server::await_ready_or_end() {
    const auto give_up_at = std::chrono::steady_clock::now() + 60s;
    while (!plan_.is_ready()) {
        if (ended()) return false;
        if (std::chrono::steady_clock::now() > give_up_at)
            throw std::runtime_error(plan_.name + " did not become ready:\n" + end_of_log());
        std::this_thread::sleep_for(20ms);
    }
    return true;
}

bool Server::listens() const {
    if (pid_ < 0) return false;
    const auto sockets = listeners_on(port_);
    return has_one_of(pid_, sockets) ||
           std::ranges::any_of(children_of(pid_), [&](pid_t child) { return has_one_of(child, sockets); });
}

bool Server::ended() {
    if (pid_ < 0) return true;
    if (waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
}

std::string Server::end_of_log() const {
    const std::string log = content_of(folder_->path() / "server.log");
    return log.size() > 2000 ? log.substr(log.size() - 2000) : log;
}

void Server::send(int signal) const {
    if (pid_ < 0) return;
    // Those of PostgreSQL leave its group. They are listed before it is gone, and one that it starts meanwhile is
    // found by looking once more.
    const auto children = children_of(pid_);
    ::kill(-pid_, signal);
    for (const auto& found : {children, children_of(pid_)})
        for (const pid_t child : found) ::kill(child, signal);
    // A signal is sent in no time, but each thread stops when it gets to it, and may answer somebody before that.
    if (signal == SIGSTOP)
        while (!has_halted(pid_)) std::this_thread::yield();
}

void Server::kill() {
    if (pid_ < 0) return;
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    was_killed_ = true;
}

void Server::stop() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

std::uint16_t free_port() {
    const base::Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    if (!probe || bind(probe.get(), where, size) != 0 || getsockname(probe.get(), where, &size) != 0)
        give_up("find a free port");
    return ntohs(address.sin_port);
}

void run_as_server(const std::vector<std::string>& command) {
    const ServerFolder folder;
    const std::filesystem::path log = folder.path() / "log";
    const pid_t pid = launch_as_server(command, {}, log);
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) throw std::runtime_error(command.front() + " failed:\n" + content_of(log));
}

}  // namespace holdfast::tests
