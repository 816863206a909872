#include "support/etcd_by_hand.hpp"
#include "support/servers/clock.hpp"
#include "support/servers/kinds.hpp"
#include "torture/driver/roads.hpp"
#include "torture/driver/stage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <iterator>

namespace torture {
namespace {

using namespace holdfast::tests;

/// Of etcd, instead of five seconds: there is one clock here, and leases are to be taken over.
constexpr std::chrono::seconds etcd_margin{1};

/// Of one node, or of all.
std::string etcd_url(const std::vector<std::uint16_t>& ports) {
    return fmt::format("etcd://127.0.0.1:{}/torture?clock_margin={}s", fmt::join(ports, ",127.0.0.1:"),
                       etcd_margin.count());
}

/// A store in a server of its own. Its clock can be moved where the server asks libc for the time.
class ServerStage final : public Stage {
public:
    explicit ServerStage(std::string kind) : kind_(std::move(kind)), server_(start()), roads_({server_->port()}) {}

    [[nodiscard]] std::string url() const override { return url_at(roads_.ports().front()); }
    [[nodiscard]] std::string inner_url() const override { return url_at(server_->port()); }
    [[nodiscard]] std::vector<std::string> faults() const override {
        std::vector<std::string> faults{"server_kill", "server_stop"};
        std::ranges::move(Roads::faults(), std::back_inserter(faults));
        if (kind_ != "etcd") faults.emplace_back("clock");
        return faults;
    }
    [[nodiscard]] std::chrono::milliseconds margin() const override {
        return kind_ == "etcd" ? etcd_margin : std::chrono::milliseconds{};
    }
    void begin(const Choice& choice) override {
        if (choice.fault == "server_kill") server_->kill();
        if (choice.fault == "server_stop") server_->send(SIGSTOP);
        if (choice.fault == "clock") clock_.step(choice.step);
        roads_.begin(choice);
    }
    void finish(const Choice& choice) override {
        if (choice.fault == "server_kill") server_->start();
        if (choice.fault == "server_stop") server_->send(SIGCONT);
        roads_.finish(choice);
    }

private:
    [[nodiscard]] std::string url_at(std::uint16_t port) const {
        const std::string place = fmt::format("127.0.0.1:{}", port);
        if (kind_ == "postgres")
            return fmt::format("postgres://{}:{}@{}/postgres", server_user_name, server_password, place);
        if (kind_ == "mysql") return fmt::format("mysql://{}:{}@{}/torture", server_user_name, server_password, place);
        if (kind_ == "redis") return fmt::format("redis://:{}@{}/0", server_password, place);
        if (kind_ == "http") return "http://" + place;
        return etcd_url({port});
    }
    [[nodiscard]] std::unique_ptr<Server> start() const {
        const ServerOptions options{.environment = clock_.environment()};
        if (kind_ == "postgres") return start_postgres_server(options);
        if (kind_ == "redis") return start_redis_server(options);
        if (kind_ == "etcd") return start_etcd_server();
        if (kind_ == "http") return start_daemon("", options);
        auto server = start_mariadb_server(options);
        run_as_server({"/usr/bin/mariadb", "--host=127.0.0.1", fmt::format("--port={}", server->port()),
                       fmt::format("--user={}", server_user_name), fmt::format("--password={}", server_password),
                       "--execute=CREATE DATABASE torture"});
        return server;
    }

    std::string kind_;
    ServerClock clock_{};
    std::unique_ptr<Server> server_;
    Roads roads_;
};

/// A daemon in front of a database, which clients reach through a proxy.
class DaemonStage final : public Stage {
public:
    [[nodiscard]] std::string url() const override { return url_at(roads_.ports().front()); }
    [[nodiscard]] std::string inner_url() const override { return url_at(daemon_->port()); }
    [[nodiscard]] std::vector<std::string> faults() const override {
        std::vector<std::string> faults{"server_kill", "server_stop", "database_kill", "database_stop"};
        std::ranges::move(Roads::faults(), std::back_inserter(faults));
        return faults;
    }
    void begin(const Choice& choice) override {
        if (choice.fault.ends_with("_kill")) victim(choice).kill();
        if (choice.fault.ends_with("_stop")) victim(choice).send(SIGSTOP);
        roads_.begin(choice);
    }
    void finish(const Choice& choice) override {
        if (choice.fault.ends_with("_kill")) victim(choice).start();
        if (choice.fault.ends_with("_stop")) victim(choice).send(SIGCONT);
        roads_.finish(choice);
    }

private:
    [[nodiscard]] static std::string url_at(std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); }
    [[nodiscard]] Server& victim(const Choice& choice) const {
        return choice.fault.starts_with("database") ? *database_ : *daemon_;
    }

    const std::unique_ptr<Server> database_ = start_postgres_server();
    const std::unique_ptr<Server> daemon_ = start_daemon(
        fmt::format("postgres://{}:{}@127.0.0.1:{}/postgres", server_user_name, server_password, database_->port()));
    Roads roads_{{daemon_->port()}};
};

/// Three nodes of etcd. Clients reach them through one proxy each, and so do the nodes each other: what a node has to
/// say travels on connections that the others have made to it, so a proxy in front of it can make it mute.
class ClusterStage final : public Stage {
public:
    [[nodiscard]] std::string url() const override { return etcd_url(roads_.ports()); }
    [[nodiscard]] std::string inner_url() const override { return etcd_url(ports()); }
    [[nodiscard]] std::chrono::milliseconds margin() const override { return etcd_margin; }
    [[nodiscard]] std::vector<std::string> faults() const override {
        std::vector<std::string> faults{"node_kill",   "node_stop",   "node_mute",
                                        "leader_kill", "leader_stop", "leader_mute"};
        std::ranges::move(Roads::faults(), std::back_inserter(faults));
        return faults;
    }
    void begin(const Choice& choice) override {
        if (choice.fault.starts_with("node_")) victim_ = choice.place % nodes_.size();
        if (choice.fault.starts_with("leader_")) victim_ = leader().value_or(choice.place % nodes_.size());
        if (choice.fault.ends_with("_kill")) nodes_[victim_]->kill();
        if (choice.fault.ends_with("_stop")) nodes_[victim_]->send(SIGSTOP);
        if (choice.fault.ends_with("_mute")) mouths_[victim_]->become({.holds_replies = true});
        roads_.begin(choice);
    }
    void finish(const Choice& choice) override {
        if (choice.fault.ends_with("_kill")) nodes_[victim_]->start();
        if (choice.fault.ends_with("_stop")) nodes_[victim_]->send(SIGCONT);
        if (choice.fault.ends_with("_mute")) mouths_[victim_]->become({});
        roads_.finish(choice);
    }

private:
    [[nodiscard]] std::vector<std::uint16_t> ports() const {
        std::vector<std::uint16_t> ports;
        for (const auto& node : nodes_) ports.push_back(node->port());
        return ports;
    }
    /// Empty: there is none at the moment.
    [[nodiscard]] std::optional<std::size_t> leader() const {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            try {
                if (EtcdByHand(nodes_[i]->port()).leads()) return i;
            } catch (const std::runtime_error&) {
                continue;  // Still starting.
            }
        }
        return std::nullopt;
    }

    std::vector<std::unique_ptr<Proxy>> mouths_{};
    std::array<std::unique_ptr<Server>, 3> nodes_ = start_etcd_cluster(
        [this](std::uint16_t port) { return mouths_.emplace_back(std::make_unique<Proxy>(port))->port(); });
    Roads roads_{ports()};
    std::size_t victim_ = 0;
};

}  // namespace

std::unique_ptr<Stage> set_up_server(const std::string& kind) { return std::make_unique<ServerStage>(kind); }

std::unique_ptr<Stage> set_up_daemon_on_server() { return std::make_unique<DaemonStage>(); }

std::unique_ptr<Stage> set_up_cluster() { return std::make_unique<ClusterStage>(); }

}  // namespace torture
