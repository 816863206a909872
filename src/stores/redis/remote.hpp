#pragma once

#include "stores/redis/codec.hpp"
#include "stores/redis/optimistic.hpp"

#include <atomic>
#include <mutex>

namespace holdfast::stores::redis {

enum class IfMissing { nothing, create };

/// An answer of the script.
struct Looked {
    Outline outline{};
    Message answer;
    Instant now{};  ///< The time by which the protocol judges.

    [[nodiscard]] bool exists() const { return outline.kind != Outline::Kind::none; }
};

/// One store in one server, and its identity once it is known. May be used by any thread.
class Remote {
public:
    Remote(Address address, const Clock& clock);

    /// Reads locks.
    [[nodiscard]] Result<Looked> look(std::span<const Wanted> wanted, IfMissing missing, Deadline deadline);
    /// Writes if the server's clock is within `window` and nothing has changed. Otherwise reads the locks.
    [[nodiscard]] Result<Looked> commit(std::span<const Wanted> wanted, const PlannedWrite& planned,
                                        const Window& window, Deadline deadline);

    /// Fails if the server no longer has the store that this process knows: a store that was flushed must not be taken
    /// for an empty one. The server's clock; empty if nobody has created the store yet.
    [[nodiscard]] Result<std::optional<Instant>> confirm(Deadline deadline);

    [[nodiscard]] Server& server() { return server_; }
    [[nodiscard]] const Server& server() const { return server_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Clock& clock() const { return clock_; }
    [[nodiscard]] const ServerClock& server_clock() const { return server_clock_; }
    [[nodiscard]] std::optional<StoreId> store_id() const;
    /// As of the last look.
    [[nodiscard]] bool was_used() const { return was_used_; }

private:
    [[nodiscard]] Result<Looked> run(const ScriptCall& call, Effect effect, Deadline deadline);

    const Clock& clock_;
    Server server_;
    const Keys keys_;
    ServerClock server_clock_{};

    std::atomic<bool> was_used_ = false;

    mutable std::mutex mutex_;
    std::optional<StoreId> store_id_{};  ///< Guarded by mutex_. Never changes once it is known.
};

}  // namespace holdfast::stores::redis
