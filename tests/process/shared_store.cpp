#include "process/shared_store.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/run_settings.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <algorithm>

namespace holdfast::tests {
namespace {

bool spends_a_token(EventKind kind) {
    using enum EventKind;
    return kind == acquired || kind == stolen || kind == broken || kind == transferred || kind == override_approved;
}

}  // namespace

std::string url_in(const std::filesystem::path& folder, const std::string& scheme) {
    // In a server: a place that only this folder has.
    const std::string name = folder.string();
    const Digest digest = sha256({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()});
    const std::string own = "hf_" + to_hex(std::span(digest).first(12));
    if (scheme == "postgres") return postgres_url(shared_server_port(scheme), "schema=" + own);
    return scheme + ":" + (folder / "store").string();
}

std::vector<std::string> schemes_on_disk() { return {"file", "sqlite"}; }

std::vector<std::string> shared_schemes() {
    auto schemes = schemes_on_disk();
    schemes.emplace_back("postgres");
    return schemes;
}

int rounds_on(const std::string& scheme, int rounds) {
    const bool on_disk = std::ranges::count(schemes_on_disk(), scheme) > 0;
    return scaled(on_disk ? rounds : rounds / 4);
}

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
