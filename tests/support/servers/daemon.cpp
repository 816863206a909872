#include "base/fd.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/loopback.hpp"

#include <array>
#include <string_view>
#include <sys/socket.h>

namespace holdfast::tests {
namespace {

bool daemon_answers(std::uint16_t port) {
    const base::Fd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = 2, .tv_usec = 0};
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const sockaddr_in address = loopback(port);
    if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
    constexpr std::string_view question = "GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    if (send(connection.get(), question.data(), question.size(), MSG_NOSIGNAL) <= 0) return false;
    std::array<char, 64> answer{};
    const ssize_t got = recv(connection.get(), answer.data(), answer.size(), 0);
    return got > 0 &&
           std::string_view(answer.data(), static_cast<std::size_t>(got)).find(" 200 ") != std::string_view::npos;
}

}  // namespace

std::unique_ptr<Server> start_daemon(const std::string& store, const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::uint16_t port = free_port();
    Server::Plan plan{.name = "daemon",
                      .command = {HOLDFAST_PROGRAM, "serve", "--listen", "127.0.0.1:" + std::to_string(port), "--store",
                                  store.empty() ? "sqlite:" + (folder->path() / "locks.db").string() : store},
                      .environment = {"HOME=" + folder->path().string(), "XDG_CONFIG_HOME=" + folder->path().string()},
                      .is_ready = [port] { return daemon_answers(port); }};
    plan.environment.insert(plan.environment.end(), options.environment.begin(), options.environment.end());
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), port);
}

}  // namespace holdfast::tests
