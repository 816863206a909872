#pragma once

#include "guards/sql/fence.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/fence.hpp"
#include "sql/session.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace holdfast::guards {

struct FencedSessionOptions {
    std::function<Result<std::unique_ptr<sql::Session>>()> connect;
    std::optional<FenceClaim> claim{};  ///< Absent: nothing is fenced.
    std::chrono::milliseconds ttl{30'000};
    /// Asked to stop when the lease is lost, or somebody wants an end: what runs is cancelled at the server, and
    /// nothing of it is committed.
    std::stop_token stop{};
    const Clock* clock = nullptr;
};

/// A connection that a worker has, behind the fence of its lease.
class FencedSession {
public:
    /// Connects, and seals for the claim: from then on no earlier holder can write.
    [[nodiscard]] static Result<FencedSession> open(FencedSessionOptions options);

    /// A new connection in the place of this one.
    [[nodiscard]] Result<void> reconnect();

    [[nodiscard]] Result<void> begin();
    [[nodiscard]] Result<void> commit();
    void rollback();

    /// For statements that commit by themselves: see `Fence::enter_connection`.
    [[nodiscard]] Result<void> enter_connection();
    void leave_connection();

    /// Runs `call`, which uses the session. When a stop is asked for, its statement is cancelled until `call` returns.
    /// False, and nothing was called, if that was before.
    [[nodiscard]] bool run_cancellable(const std::function<void()>& call);

    [[nodiscard]] bool is_stopped() const { return options_.stop.stop_requested(); }
    [[nodiscard]] const std::optional<FenceClaim>& claim() const { return options_.claim; }
    [[nodiscard]] const Clock& clock() const { return *options_.clock; }
    /// For a statement of ours.
    [[nodiscard]] Deadline soon() const { return Deadline::in(*options_.clock, std::chrono::seconds{20}); }
    [[nodiscard]] sql::Session& session() { return *session_; }

private:
    explicit FencedSession(FencedSessionOptions options) : options_(std::move(options)) {}
    [[nodiscard]] Result<void> connect();

    FencedSessionOptions options_;
    std::unique_ptr<sql::Session> session_{};
    std::unique_ptr<fence::Fence> fence_{};  ///< Null without a claim.
};

}  // namespace holdfast::guards
