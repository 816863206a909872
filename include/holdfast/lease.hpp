#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The values of the protocol: names, identities, leases. They are plain values: copied freely, compared by content,
/// and safe to use from any thread as long as nobody changes them meanwhile.
///
/// Nothing here does I/O, except that the `random()` functions ask the operating system for entropy and
/// `Holder::this_process()` asks it who this process is. A function that returns a `Result` refuses bad input with the
/// code that its comment names; none of them throws.
namespace [[gnu::visibility("default")]] holdfast {

/// The name of a lock: 1 to 255 bytes of UTF-8 without control characters.
///
/// Bytes are compared, never folded: `X`, `x` and `x ` are three locks. `/` is allowed and has no meaning beyond the
/// convention `area/what` (`migrate/prod`). No part between two slashes is `.` or `..`: such a name is nearly always a
/// path that was passed by mistake.
///
/// A name comes from users and may be hostile. Stores bind or encode it; code that prints it on a terminal must escape
/// what is not printable.
class LockName {
public:
    static constexpr std::size_t max_bytes = 255;

    /// The only way to make one, so that every `LockName` is valid. Refused with `name_invalid` and the reason.
    [[nodiscard]] static Result<LockName> parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }
    /// By bytes: the order in which several locks are taken, and in which lists are sorted.
    [[nodiscard]] auto operator<=>(const LockName&) const = default;

private:
    explicit LockName(std::string text) : text_(std::move(text)) {}
    std::string text_{};
};

/// Sixteen random bytes, written as a version 4 UUID. `Tag` makes different kinds different types, so that the id of a
/// store cannot be passed where the id of a lease is meant.
template <class Tag>
class Uuid {
public:
    using Bytes = std::array<std::uint8_t, 16>;

    Uuid() = default;
    explicit Uuid(const Bytes& bytes) : bytes_(bytes) {}

    /// From the operating system's entropy: two never meet. Ends the process if there is none.
    [[nodiscard]] static Uuid random();
    /// Accepts the usual form of 36 characters, of any version, in upper or lower case. Refused with `usage`.
    [[nodiscard]] static Result<Uuid> parse(std::string_view text);

    /// In lower case.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] const Bytes& bytes() const { return bytes_; }
    [[nodiscard]] auto operator<=>(const Uuid&) const = default;

private:
    Bytes bytes_{};
};

/// Names one lease, publicly: it is shown in lists, logs and JSON, and proves nothing.
///
/// The caller chooses it before it sends Acquire, so that a request whose answer was lost can be repeated safely. It is
/// used once: a lease that ended never comes back under the same lock_id.
using LockId = Uuid<struct LockIdTag>;

/// Names one store. Made when the store is created, and part of every fence: a resource that was sealed under one store
/// refuses the tokens of another. A copy of a database has the same id, although it is another store.
using StoreId = Uuid<struct StoreIdTag>;

using Digest = std::array<std::uint8_t, 32>;  ///< SHA-256.

/// What a store keeps of a lease_key: its SHA-256. The key has 128 random bits, so the hash needs no salt.
struct KeyHash {
    Digest digest{};
    [[nodiscard]] bool operator==(const KeyHash& other) const;  ///< Takes the same time whatever differs.
};

/// The secret of one lease. A caller that knows it can renew, release and transfer the lease, so it must never reach a
/// log, a process list or an error text. It has no stream operator, so that this does not happen by accident.
class LeaseKey {
public:
    using Bytes = std::array<std::uint8_t, 16>;

    explicit LeaseKey(const Bytes& bytes) : bytes_(bytes) {}

    [[nodiscard]] static LeaseKey random();
    [[nodiscard]] KeyHash hash() const;
    /// 32 hexadecimal digits. The caller is responsible for who sees them.
    [[nodiscard]] std::string reveal() const;

    [[nodiscard]] bool operator==(const LeaseKey&) const = default;

private:
    Bytes bytes_;
};

/// What proves that a caller is the holder: `<lock_id>.<lease_key>`, the word `lease` in flags, JSON and
/// HOLDFAST_LEASE.
struct Credentials {
    LockId lock_id{};
    LeaseKey key;

    [[nodiscard]] static Credentials random() { return {LockId::random(), LeaseKey::random()}; }
    /// Refused with `usage`; the message never repeats the text, which may hold a secret.
    [[nodiscard]] static Result<Credentials> parse(std::string_view text);
    [[nodiscard]] std::string reveal() const { return lock_id.text() + "." + key.reveal(); }

    [[nodiscard]] bool operator==(const Credentials&) const = default;
};

/// The fencing token. It rises with every grant of a lock and never comes back: not after release, expiry, steal,
/// break, restart, pruning, or a store that was wiped or restored. Zero: never granted.
///
/// A protected resource that remembers the highest token it has seen, and refuses lower ones, is safe from a holder
/// that was paused beyond its lease. Tokens of different locks, or of different stores, cannot be compared.
struct FencingToken {
    static constexpr std::uint64_t limit = std::uint64_t{1} << 53;  ///< Exact as a double, too.

    std::uint64_t value = 0;
    [[nodiscard]] auto operator<=>(const FencingToken&) const = default;
};

/// How long a grant or a renewal lasts: 50 ms to 366 days. A crashed holder blocks its lock for this long; a holder
/// that is paused for longer loses it.
class Ttl {
public:
    static constexpr std::chrono::milliseconds shortest{50};
    static constexpr std::chrono::milliseconds longest{std::chrono::hours{24 * 366}};

    /// Refused with `usage` outside the limits.
    [[nodiscard]] static Result<Ttl> of(std::chrono::milliseconds time);

    [[nodiscard]] std::chrono::milliseconds time() const { return time_; }
    [[nodiscard]] auto operator<=>(const Ttl&) const = default;

private:
    explicit Ttl(std::chrono::milliseconds time) : time_(time) {}
    std::chrono::milliseconds time_;
};

/// Who holds a lock, for people and for the audit log. It proves nothing: two holders may have the same text.
struct Holder {
    std::string text{};  ///< `host:user:pid:start_time` of a process, or what the caller says: a job, a dashboard.
    std::string user{};  ///< Optional: the person on whose behalf.

    /// This process. The start time tells it from a later process with the same pid.
    [[nodiscard]] static Holder this_process();
    /// `ci@web-3 (pid 812)` for a process, the text itself otherwise.
    [[nodiscard]] std::string display() const;

    [[nodiscard]] bool operator==(const Holder&) const = default;
};

/// One grant of a lock, as anybody may see it: without its key.
///
/// All times are those of the store's clock. They are for people and must not be compared with the clock of another
/// host; how long a holder may rely on its lease is `Hold::deadline()`.
struct Lease {
    LockId lock_id{};
    FencingToken token{};
    Holder holder{};
    std::string operation{};           ///< What the holder does: `migrate up`.
    std::string reason{};              ///< Why, in the words of a person.
    std::chrono::milliseconds ttl{0};  ///< Of the last grant or renewal.
    Instant acquired_at{};
    Instant renewed_at{};
    std::uint64_t renew_seq = 0;                ///< Counts renewals; an unchanged one means nobody renewed.
    Instant expires_at{};                       ///< By the store's clock.
    std::optional<Instant> max_until{};         ///< No renewal goes beyond this.
    std::map<std::string, std::string> meta{};  ///< What the caller attached. Bounded; see `docs/PROTOCOL.md`.

    [[nodiscard]] bool operator==(const Lease&) const = default;
};

/// A request to take over a held lock, until it is answered or its time is over. A lock has at most one.
struct Override {
    LockId lock_id{};  ///< Names the request. On approval it becomes that of the asker's lease.
    Holder asker{};
    std::string reason{};
    std::chrono::milliseconds ttl{0};
    Instant asked_at{};
    Instant expires_at{};  ///< After this nobody waits for the answer any more.

    [[nodiscard]] bool operator==(const Override&) const = default;
};

enum class LockState {
    free,        ///< No lease. Waiters may be queued for it.
    held,        ///< A lease is live.
    expired,     ///< A lease has run out and nobody has taken the lock since. The next grant is a steal.
    unreadable,  ///< The stored lock cannot be read. It is blocked until it is repaired.
};
[[nodiscard]] std::string_view name_of(LockState state);

/// One lock as the store saw it at `as_of`. By the time a caller reads it, it may have changed: decisions are made by
/// sending a request, which the store decides atomically, and not from a status.
struct LockStatus {
    LockName name;
    LockState state = LockState::free;
    FencingToken token{};          ///< The highest this lock ever carried.
    std::optional<Lease> lease{};  ///< Absent when free.
    std::uint64_t waiters = 0;     ///< Live tickets in its queue.
    std::optional<Override> override_request{};
    std::uint64_t seq = 0;         ///< Of the newest audit event; 0 when the lock was never used.
    Digest chain{};                ///< The hash of that event.
    std::uint64_t pruned_seq = 0;  ///< Of the newest event that was pruned; 0 if none was.
    Instant as_of{};               ///< The store's clock when it looked.

    [[nodiscard]] bool operator==(const LockStatus&) const = default;
};

}  // namespace holdfast

/// For unordered containers of names.
template <>
struct std::hash<holdfast::LockName> {
    [[nodiscard]] std::size_t operator()(const holdfast::LockName& name) const noexcept {
        return std::hash<std::string>{}(name.text());
    }
};
