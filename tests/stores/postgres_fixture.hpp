#pragma once

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {

/// A schema of the test's own, in the server that the run shares, under the host's clock.
class PostgresFixture : public testing::Test {
protected:
    ~PostgresFixture() override { by_hand_("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE"); }

    [[nodiscard]] std::string url(const std::string& parameters = "") const {
        return postgres_url(port_, "schema=" + schema_ + (parameters.empty() ? "" : "&" + parameters));
    }
    [[nodiscard]] std::unique_ptr<Store> open(const std::string& parameters = "") const {
        return must(open_store(url(parameters)));
    }
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), std::chrono::seconds{20}); }

    /// In SQL, where the lock's row is.
    [[nodiscard]] std::string row_of_lock(const LockName& name) const {
        return schema_ + ".locks WHERE name = " + ByHand::bytes(name.text());
    }

    const std::uint16_t port_ = shared_server_port("postgres");
    const std::string schema_ = random_schema();
    ByHand by_hand_{port_};
};

/// Throws unless the lock can be read, its audit log is whole and no token was given twice.
inline LockStatus sound_lock(Store& store, const LockName& name, Deadline deadline) {
    LockStatus status = must(store.inspect(name, deadline));
    const auto events = must(store.history({.name = name}, deadline));
    must(verify_chain(events, status));
    FencingToken highest{};
    for (const AuditEvent& event : events) {
        const bool grants = event.kind == EventKind::acquired || event.kind == EventKind::stolen;
        if (grants ? event.token <= highest : event.token < highest)
            throw std::runtime_error("the token did not rise at event " + std::to_string(event.seq));
        highest = event.token;
    }
    return status;
}

}  // namespace holdfast::tests
