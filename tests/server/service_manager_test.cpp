// What the daemon tells the manager of services, and what it takes from it.
#include "server/service_manager.hpp"

#include "base/fd.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::server {
namespace {

class Manager {
public:
    explicit Manager(const std::string& path)
        : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        if (path[0] == '@') address.sun_path[0] = '\0';
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
        EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
        setenv("NOTIFY_SOCKET", path.c_str(), 1);
    }
    ~Manager() { unsetenv("NOTIFY_SOCKET"); }
    [[nodiscard]] std::string heard() const {
        std::array<char, 256> text{};
        const ssize_t got = recv(socket_.get(), text.data(), text.size(), 0);
        return got < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(got));
    }

private:
    base::Fd socket_;
};

TEST(ServiceManager, HearsWhatTheDaemonSays) {
    const tests::TempFolder folder;
    for (const std::string& path :
         {(folder.path() / "notify").string(), "@holdfast-test-" + std::to_string(getpid())}) {
        const Manager manager(path);
        notify_manager("READY=1\nSTATUS=serving");
        EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=serving") << path;
    }
}

TEST(ServiceManager, ThatIsNotThereIsNoProblem) {
    unsetenv("NOTIFY_SOCKET");
    notify_manager("READY=1");
    for (const std::string& path : {std::string(), std::string("/"), std::string("relative"),
                                    std::string("/nowhere/at/all"), "/" + std::string(200, 'x')}) {
        setenv("NOTIFY_SOCKET", path.c_str(), 1);
        notify_manager("READY=1");
    }
    unsetenv("NOTIFY_SOCKET");
}

/// In a child, with `socket` as the inherited one: 0 if it was taken, 1 if there was none, 2 if it was refused.
int taken_in_child(int socket, const std::string& count, bool for_somebody_else = false) {
    const pid_t child = fork();
    if (child == 0) {
        if (socket >= 0 && socket != 3) dup2(socket, 3);
        setenv("LISTEN_PID", std::to_string(for_somebody_else ? getppid() : getpid()).c_str(), 1);
        setenv("LISTEN_FDS", count.c_str(), 1);
        const auto taken = take_inherited_socket();
        if (!taken) _exit(2);
        const bool is_private = !*taken || (fcntl((*taken)->descriptor, F_GETFD) & FD_CLOEXEC) != 0;
        const auto again = take_inherited_socket();
        const bool is_once = std::getenv("LISTEN_FDS") == nullptr && again && !*again;
        if (!is_private || !is_once) _exit(3);
        if (!*taken) _exit(1);
        _exit((*taken)->descriptor == 3 && (*taken)->address.starts_with("127.0.0.1:") ? 0 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

base::Fd tcp_socket(bool listens) {
    base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listens ? listen(socket.get(), 1) : 0, 0);
    return socket;
}

TEST(ServiceManager, HandsOverAListeningSocketOnce) {
    const base::Fd socket = tcp_socket(true);
    EXPECT_EQ(taken_in_child(socket.get(), "1"), 0);
}

TEST(ServiceManager, WhatWasMeantForAnotherProcessIsNotTaken) {
    const base::Fd socket = tcp_socket(true);
    EXPECT_EQ(taken_in_child(socket.get(), "1", true), 1);
    for (const char* count : {"0", "-1", "", "1x", " 1"}) EXPECT_EQ(taken_in_child(socket.get(), count), 1) << count;
}

TEST(ServiceManager, WhatIsNotOneTcpListenerIsRefused) {
    const base::Fd listener = tcp_socket(true);
    EXPECT_EQ(taken_in_child(listener.get(), "2"), 2);
    const base::Fd quiet = tcp_socket(false);
    EXPECT_EQ(taken_in_child(quiet.get(), "1"), 2);
    const base::Fd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(taken_in_child(datagrams.get(), "1"), 2);
    const base::Fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(taken_in_child(file.get(), "1"), 2);
}

}  // namespace
}  // namespace holdfast::server
