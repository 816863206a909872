#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <curl/curl.h>

namespace holdfast::tests {
namespace {

std::size_t append(char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
}

/// It says that it is healthy only when there is a leader.
bool etcd_answers(std::uint16_t port) {
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> request(curl_easy_init(), curl_easy_cleanup);
    std::string answer;
    curl_easy_setopt(request.get(), CURLOPT_URL, fmt::format("http://127.0.0.1:{}/health", port).c_str());
    curl_easy_setopt(request.get(), CURLOPT_PROXY, "");
    curl_easy_setopt(request.get(), CURLOPT_TIMEOUT_MS, 2000L);
    curl_easy_setopt(request.get(), CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(request.get(), CURLOPT_WRITEDATA, &answer);
    return curl_easy_perform(request.get()) == CURLE_OK && answer.find("true") != std::string::npos;
}

struct Node {
    std::string name;
    std::uint16_t client_port = free_port();
    std::uint16_t peer_port = free_port();
    std::uint16_t known_port = peer_port;  ///< Where the others look for it.
};

std::unique_ptr<Server> start_node(const Node& node, const std::string& cluster, std::function<bool()> is_ready,
                                   const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const auto url = [](std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); };
    Server::Plan plan{.name = "etcd",
                      .command = {server_program("etcd", "/usr/bin", "etcd"), "--name", node.name, "--data-dir",
                                  (folder->path() / "data").string(), "--listen-client-urls", url(node.client_port),
                                  "--advertise-client-urls", url(node.client_port), "--listen-peer-urls",
                                  url(node.peer_port), "--initial-advertise-peer-urls", url(node.known_port),
                                  "--initial-cluster", cluster, "--log-level", "error"},
                      .environment = options.environment,
                      .is_ready = std::move(is_ready)};
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), node.client_port);
}

std::string member(const Node& node) { return fmt::format("{}=http://127.0.0.1:{}", node.name, node.known_port); }

}  // namespace

std::unique_ptr<Server> start_etcd_server(const ServerOptions& options) {
    const Node node{.name = "one"};
    // It elects itself, which needs no patience with others.
    ServerOptions hasty = options;
    hasty.arguments.insert(hasty.arguments.begin(), {"--heartbeat-interval=20", "--election-timeout=200"});
    return start_node(node, member(node), [port = node.client_port] { return etcd_answers(port); }, hasty);
}

std::array<std::unique_ptr<Server>, 3> start_etcd_cluster(const std::function<std::uint16_t(std::uint16_t)>& in_front) {
    std::array nodes{Node{.name = "one"}, Node{.name = "two"}, Node{.name = "three"}};
    if (in_front)
        for (Node& node : nodes) node.known_port = in_front(node.peer_port);
    const std::string cluster = fmt::format("{},{},{}", member(nodes[0]), member(nodes[1]), member(nodes[2]));
    // The first nodes have nobody to elect with, so only the last waits.
    const auto at_once = [] { return true; };
    auto one = start_node(nodes[0], cluster, at_once, {});
    auto two = start_node(nodes[1], cluster, at_once, {});
    const auto all = [nodes] {
        return etcd_answers(nodes[0].client_port) && etcd_answers(nodes[1].client_port) &&
               etcd_answers(nodes[2].client_port);
    };
    auto three = start_node(nodes[2], cluster, all, {});
    return {std::move(one), std::move(two), std::move(three)};
}

}  // namespace holdfast::tests
