#include "stores/http/grade.hpp"

#include "stores/http/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace holdfast::stores::http {
namespace {

Result<json::ReadStore> read_store_at(Server& server, const Path& path, const base::CallBudget& budget) {
    const auto node = server.read(path.text(), budget);
    if (!node) return std::unexpected(node.error());
    auto store = json::read_store(*node);
    if (!store) return std::unexpected(not_understood(server.address(), store.error()));
    // A lease ends with a process of the host where the store is opened, and that is the daemon.
    store->properties.has_sessions = false;
    // All clients of the daemon share the store, whatever kind it is.
    store->properties.is_shared = true;
    return store;
}

}  // namespace

Result<json::ReadStore> read_store(Server& server, const base::CallBudget& budget) {
    return read_store_at(server, Path("/v1/store"), budget);
}

std::vector<Finding> examine_daemon(Server& server, const base::CallBudget& budget) {
    const Address& address = server.address();
    const auto store = read_store(server, budget);
    if (!store) return {{"reachable", false, store.error().message}};
    std::vector<Finding> findings{
        {"reachable", true, fmt::format("{}, in front of {}", address.shown, store->info.url)}};
    findings.push_back({"encrypted", true,
                        address.base.starts_with("https:") ? "TLS, and the daemon's certificate is verified"
                                                           : "not needed: the daemon is on this host"});
    auto examined = read_store_at(server, Path("/v1/store").add("examine", "1"), budget);
    if (!examined) {
        findings.push_back({"daemon's store", false, examined.error().message});
        return findings;
    }
    for (Finding& finding : examined->findings)
        // The way to the daemon's store is another one than that to the daemon.
        if (finding.name == "reachable") finding.name = "store reachable";
    std::ranges::move(examined->findings, std::back_inserter(findings));
    return findings;
}

}  // namespace holdfast::stores::http
