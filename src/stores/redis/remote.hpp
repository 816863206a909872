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
    Instant now{};  ///< By which the protocol judges.

    [[nodiscard]] bool exists() const { return outline.kind != Outline::Kind::none; }
};

/// One store in one server, and what this process knows of it. May be used by any thread.
class Remote {
public:
    Remote(Address address, const Clock& clock);

    /// Reads locks.
    [[nodiscard]] Result<Looked> look(std::span<const Wanted> wanted, IfMissing missing, Deadline deadline);
    /// Writes, in `window` and unless something changed: otherwise it is a look.
    [[nodiscard]] Result<Looked> commit(std::span<const Wanted> wanted, const Writing& writing, const Window& window,
                                        Deadline deadline);

    /// Succeeds if what was read just now is of the store that this process knows: a store that was flushed
    /// must not be taken for an empty one. The clock, or nothing if nobody has created the store yet.
    [[nodiscard]] Result<std::optional<Instant>> confirm(Deadline deadline);

    [[nodiscard]] Server& server() { return server_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Clock& clock() const { return clock_; }
    [[nodiscard]] const ServerClock& server_clock() const { return server_clock_; }
    [[nodiscard]] std::optional<StoreId> store_id() const;
    /// When it was last looked at.
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
