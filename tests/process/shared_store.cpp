#include "process/shared_store.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::tests {
namespace {

bool spends_a_token(EventKind kind) {
    using enum EventKind;
    return kind == acquired || kind == stolen || kind == broken || kind == transferred || kind == override_approved;
}

bool is_server(const std::string& scheme) { return std::ranges::count(file_schemes(), scheme) == 0; }

}  // namespace

std::string url_in(const std::filesystem::path& folder, const std::string& scheme) {
    const std::string place = fmt::format("t{:016x}", std::hash<std::string>{}(folder.string()));
    if (is_server(scheme)) return ServerPlace(scheme, shared_server_port(scheme), place).url();
    return scheme + ":" + (folder / "store").string();
}

std::vector<std::string> file_schemes() { return {"file", "sqlite"}; }

std::vector<std::string> server_schemes() { return {"postgres", "mysql", "redis", "etcd"}; }

std::vector<std::string> shared_schemes() { return {"file", "sqlite", "postgres", "mysql", "redis", "etcd"}; }

std::chrono::milliseconds resolution_of(const std::string& scheme) {
    return std::chrono::seconds{scheme == "etcd" ? 3 : 0};
}

int rounds_on(const std::string& scheme, int rounds) { return scaled(is_server(scheme) ? rounds / 5 : rounds); }

std::unique_ptr<Store> open_shared(const std::string& url) { return must(open_store(url)); }

Deadline patient() { return Deadline::in(host_clock(), std::chrono::seconds{60}); }

LockStatus sound_status(Store& store, const LockName& name) {
    LockStatus status = must(store.inspect(name, patient()));
    std::vector<AuditEvent> events;
    // A server may be at work for a client that was killed: both are looked at until they are of the same moment.
    for (std::uint64_t seen = status.seq + 1; seen != status.seq;) {
        seen = status.seq;
        events = must(store.history({.name = name}, patient()));
        status = must(store.inspect(name, patient()));
    }
    must(verify_chain(events, status));
    FencingToken highest{};
    for (const AuditEvent& event : events) {
        const bool spends = spends_a_token(event.kind);
        if (spends ? event.token <= highest : event.token < highest)
            throw std::runtime_error("the token did not rise at event " + std::to_string(event.seq));
        highest = event.token;
    }
    return status;
}

}  // namespace holdfast::tests
