#include "torture/driver/stage.hpp"

#include "support/servers/clock.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace torture {
namespace {

namespace fs = std::filesystem;
using namespace holdfast::tests;

class UrlStage final : public Stage {
public:
    explicit UrlStage(std::string url) : url_(std::move(url)) {}
    [[nodiscard]] std::string url() const override { return url_; }

private:
    std::string url_;
};

/// A store in files of this host. `restore` begins with a copy and finishes by putting it in place; nobody may use the
/// store in either moment.
class FolderStage final : public Stage {
public:
    explicit FolderStage(std::string scheme) : scheme_(std::move(scheme)) {
        fs::create_directory(live());
        fs::permissions(live(), fs::perms::owner_all);
    }
    [[nodiscard]] std::string url() const override { return scheme_ + ":" + (live() / "store").string(); }
    [[nodiscard]] std::vector<std::string> faults() const override { return {"restore"}; }

    void begin(const std::string&, std::chrono::milliseconds) override {
        fs::remove_all(copy());
        fs::create_directory(copy());
        for (const auto& entry : fs::recursive_directory_iterator(live())) {
            const fs::path target = copy() / fs::relative(entry.path(), live());
            // Pipes are no data, and the index of a write-ahead log belongs to the processes that had it open.
            if (entry.is_directory()) fs::create_directory(target, entry.path());
            if (entry.is_regular_file() && entry.path().filename() != "store-shm") fs::copy_file(entry.path(), target);
        }
    }
    void finish(const std::string&) override {
        fs::remove_all(live());
        fs::rename(copy(), live());
    }

private:
    [[nodiscard]] fs::path live() const { return folder_.path() / "live"; }
    [[nodiscard]] fs::path copy() const { return folder_.path() / "copy"; }

    std::string scheme_;
    TempFolder folder_;
};

/// What a proxy does to the next message.
const std::map<std::string, Fate>& fates() {
    static const std::map<std::string, Fate> fates{
        {"lost_request", Fate::lose_request}, {"lost_reply", Fate::lose_reply}, {"silence", Fate::no_reply}};
    return fates;
}

/// A store in a server of its own, behind a proxy that loses messages. Its clock can be moved where the server asks
/// libc for the time.
class ServerStage final : public Stage {
public:
    explicit ServerStage(std::string kind) : kind_(std::move(kind)), server_(start()), proxy_(server_->port()) {}

    [[nodiscard]] std::string url() const override { return url_at(proxy_.port()); }
    [[nodiscard]] std::string inner_url() const override { return url_at(server_->port()); }
    [[nodiscard]] std::vector<std::string> faults() const override {
        std::vector<std::string> faults{"server_kill", "server_stop", "cut"};
        for (const auto& [name, fate] : fates()) faults.push_back(name);
        if (kind_ != "etcd") faults.emplace_back("clock");
        return faults;
    }
    void begin(const std::string& fault, std::chrono::milliseconds step) override {
        if (fault == "server_kill") server_->kill();
        if (fault == "server_stop") server_->send(SIGSTOP);
        if (fault == "clock") clock_.step(step);
        if (fault == "cut") proxy_.cut();
        if (fates().contains(fault)) proxy_.arrange(1, fates().at(fault));
    }
    void finish(const std::string& fault) override {
        if (fault == "server_kill") server_->start();
        if (fault == "server_stop") server_->send(SIGCONT);
        // Who got no answer waits for it as long as its own patience lasts, unless the connection breaks.
        if (fault == "silence") proxy_.cut();
    }

private:
    [[nodiscard]] std::string url_at(std::uint16_t port) const {
        const std::string place = fmt::format("127.0.0.1:{}", port);
        if (kind_ == "postgres")
            return fmt::format("postgres://{}:{}@{}/postgres", server_user_name, server_password, place);
        if (kind_ == "mysql") return fmt::format("mysql://{}:{}@{}/torture", server_user_name, server_password, place);
        if (kind_ == "redis") return fmt::format("redis://:{}@{}/0", server_password, place);
        return fmt::format("etcd://{}/torture", place);
    }
    [[nodiscard]] std::unique_ptr<Server> start() const {
        const ServerOptions options{.environment = clock_.environment()};
        if (kind_ == "postgres") return start_postgres_server(options);
        if (kind_ == "redis") return start_redis_server(options);
        if (kind_ == "etcd") return start_etcd_server();
        auto server = start_mariadb_server(options);
        run_as_server({"/usr/bin/mariadb", "--host=127.0.0.1", fmt::format("--port={}", server->port()),
                       fmt::format("--user={}", server_user_name), fmt::format("--password={}", server_password),
                       "--execute=CREATE DATABASE torture"});
        return server;
    }

    std::string kind_;
    ServerClock clock_{};
    std::unique_ptr<Server> server_;
    Proxy proxy_;
};

}  // namespace

void Stage::begin(const std::string& fault, std::chrono::milliseconds) {
    throw std::invalid_argument("this store cannot suffer " + fault);
}

void Stage::finish(const std::string&) {}

std::unique_ptr<Stage> set_up(const std::string& store) {
    if (store == "file" || store == "sqlite") return std::make_unique<FolderStage>(store);
    if (store == "postgres" || store == "mysql" || store == "redis" || store == "etcd")
        return std::make_unique<ServerStage>(store);
    if (store.find(':') != std::string::npos) return std::make_unique<UrlStage>(store);
    throw std::invalid_argument("there is no kind of store called " + store);
}

}  // namespace torture
