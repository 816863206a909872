#include "server/service_manager.hpp"

#include "base/fd.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace holdfast::server {
namespace {

constexpr int first_inherited = 3;

template <class Number>
std::optional<Number> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    Number number{};
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, number);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return number;
}

bool has_option(int socket, int option, int wanted) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

/// Empty unless it listens for TCP.
std::string address_of_listener(int socket) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    auto* const address = reinterpret_cast<sockaddr*>(&storage);
    if (getsockname(socket, address, &size) != 0) return "";
    const bool is_v6 = storage.ss_family == AF_INET6;
    if (!is_v6 && storage.ss_family != AF_INET) return "";
    if (!has_option(socket, SO_TYPE, SOCK_STREAM) || !has_option(socket, SO_ACCEPTCONN, 1)) return "";
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "";
    const std::string name = is_v6 ? "[" + std::string(host.data()) + "]" : host.data();
    return name + ":" + port.data();
}

}  // namespace

void notify_manager(std::string_view text) {
    const char* const variable = std::getenv("NOTIFY_SOCKET");
    if (variable == nullptr) return;
    const std::string_view path = variable;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
    std::memcpy(address.sun_path, path.data(), path.size());
    // A socket without a place in the file system begins with a zero byte.
    if (path[0] == '@') address.sun_path[0] = '\0';
    const base::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return;
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
}

Result<std::optional<InheritedSocket>> take_inherited_socket() {
    const auto owner = number_in<pid_t>("LISTEN_PID");
    const auto count = number_in<int>("LISTEN_FDS");
    for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(variable);
    // Meant for another process, from which this one has its environment.
    if (!owner || *owner != getpid() || !count || *count <= 0) return std::nullopt;
    if (*count > 1) return fail(Errc::config, "the service manager passed several sockets; the daemon takes one");
    InheritedSocket socket{first_inherited, address_of_listener(first_inherited)};
    if (socket.address.empty())
        return fail(Errc::config, "the socket of the service manager is not one that listens for TCP");
    if (fcntl(first_inherited, F_SETFD, FD_CLOEXEC) != 0)
        return fail(Errc::config, "the socket of the service manager cannot be used");
    return socket;
}

}  // namespace holdfast::server
