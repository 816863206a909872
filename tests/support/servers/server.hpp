#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace holdfast::tests {

/// A private folder for a server's data, owned by the user that servers run as; goes when its owner goes.
class ServerFolder {
public:
    ServerFolder();
    ServerFolder(const ServerFolder&) = delete;
    ServerFolder& operator=(const ServerFolder&) = delete;
    ~ServerFolder();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Writes a file that the server may read and others may not.
    std::string write(const std::string& name, const std::string& content) const;

private:
    std::filesystem::path path_;
};

/// A real server: a process of ours on a free loopback port. It runs as an unprivileged user, ends with its
/// owner, and ends with the test should that be killed.
class Server {
public:
    struct Plan {
        std::string name;
        std::vector<std::string> command;
        std::vector<std::string> environment{};  ///< `NAME=value`, beside what the test has.
        std::function<bool()> is_ready;          ///< Answers requests.
    };

    /// Starts it and waits until it is ready. Throws, with the end of its log, if it ends before or takes too long.
    Server(Plan plan, std::shared_ptr<const ServerFolder> folder, std::uint16_t port);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const ServerFolder& folder() const { return *folder_; }

    /// It runs, and it is this process, or a child of it, that listens on the port. An answer alone may be that of a
    /// stranger that was faster.
    [[nodiscard]] bool listens() const;

    /// SIGKILL, and waits until it is gone.
    void kill();
    /// Ends it in its own orderly way.
    void stop();
    /// Starts it again on the same port with the same data, and waits until it is ready.
    void start();
    /// To the server's process, and to those that it started.
    void send(int signal) const;

private:
    void launch();
    /// False if it ended instead.
    [[nodiscard]] bool await_ready_or_end();
    [[nodiscard]] bool ended();
    [[nodiscard]] std::string end_of_log() const;

    Plan plan_;
    std::shared_ptr<const ServerFolder> folder_;
    std::uint16_t port_;
    pid_t pid_ = -1;
    bool was_killed_ = false;
};

/// A loopback port that is free now.
[[nodiscard]] std::uint16_t free_port();

/// Every thread of it has come to a halt, or is gone.
[[nodiscard]] bool has_halted(pid_t pid);

/// Runs a command as the user that servers run as. Throws, with what it said, unless it ends with 0.
void run_as_server(const std::vector<std::string>& command);

}  // namespace holdfast::tests
