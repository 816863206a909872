#include "process/shared_store.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/servers/kinds.hpp"

namespace holdfast::tests {
namespace {

bool spends_a_token(EventKind kind) {
    using enum EventKind;
    return kind == acquired || kind == stolen || kind == broken || kind == transferred || kind == override_approved;
}

}  // namespace

std::string url_in(const std::filesystem::path& folder, const std::string& scheme) {
    if (scheme == "redis")
        return "redis://:" + std::string(server_password) +
               "@127.0.0.1:" + std::to_string(shared_server_port("redis")) + "/0?prefix=" + folder.filename().string();
    return scheme + ":" + (folder / "store").string();
}

std::vector<std::string> file_schemes() { return {"file", "sqlite"}; }

std::vector<std::string> shared_schemes() { return {"file", "sqlite", "redis"}; }

std::unique_ptr<Store> open_shared(const std::string& url) { return must(open_store(url)); }

Deadline patient() { return Deadline::in(host_clock(), std::chrono::seconds{60}); }

LockStatus sound_status(Store& store, const LockName& name) {
    LockStatus status = must(store.inspect(name, patient()));
    const auto events = must(store.history({.name = name}, patient()));
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
