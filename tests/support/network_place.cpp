#include "holdfast/open.hpp"
#include "support/daemon.hpp"
#include "support/matchers.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

/// What the benchmarks, which have places in servers, too, do without.
namespace holdfast::tests {
namespace {

struct DaemonOnSqlite {
    TempFolder folder{};
    std::unique_ptr<Store> store = must(open_store("sqlite:" + (folder.path() / "locks.db").string() + "?sync=off"));
    DaemonInside daemon{*store, host_clock()};
};

}  // namespace

ServerPlace::ServerPlace(const std::string& kind) : ServerPlace(kind, kind == "http" ? 0 : shared_server_port(kind)) {
    if (kind != "http") return;
    const auto daemon = std::make_shared<const DaemonOnSqlite>();
    port_ = daemon->daemon.port();
    daemon_ = daemon;
}

std::vector<std::string> network_kinds() {
    std::vector<std::string> kinds = server_kinds();
    kinds.emplace_back("http");
    return kinds;
}

}  // namespace holdfast::tests
