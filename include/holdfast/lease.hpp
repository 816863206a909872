#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The values of the protocol: names, identities, leases. Nothing here does I/O, except that the
/// `random()` functions ask the kernel for entropy.
namespace holdfast {

/// The name of a lock: 1 to 255 bytes of UTF-8 without control characters. Bytes are compared, never
/// folded: `X`, `x` and `x ` are three locks. `/` is allowed and has no meaning beyond convention, but
/// what stands between two of them is never `.` or `..`, which only a path that went astray contains.
class LockName {
public:
    static constexpr std::size_t max_bytes = 255;

    /// Refused with `name_invalid` and the reason.
    [[nodiscard]] static Result<LockName> parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] auto operator<=>(const LockName&) const = default;

private:
    explicit LockName(std::string text) : text_(std::move(text)) {}
    std::string text_{};
};

/// Sixteen random bytes, written as a version 4 UUID. `Tag` keeps kinds apart.
template <class Tag>
class Uuid {
public:
    using Bytes = std::array<std::uint8_t, 16>;

    Uuid() = default;
    explicit Uuid(const Bytes& bytes) : bytes_(bytes) {}

    [[nodiscard]] static Uuid random();
    [[nodiscard]] static Result<Uuid> parse(std::string_view text);

    [[nodiscard]] std::string text() const;
    [[nodiscard]] const Bytes& bytes() const { return bytes_; }
    [[nodiscard]] auto operator<=>(const Uuid&) const = default;

private:
    Bytes bytes_{};
};

/// Names one lease, publicly. Chosen by the caller before it sends Acquire, so that a repeat is safe.
/// Used once: a lease that ended never comes back under the same lock_id.
using LockId = Uuid<struct LockIdTag>;

/// Names one store, made when the store is created.
using StoreId = Uuid<struct StoreIdTag>;

using Digest = std::array<std::uint8_t, 32>;  ///< SHA-256.

/// What a store keeps of a lease_key.
struct KeyHash {
    Digest digest{};
    [[nodiscard]] bool operator==(const KeyHash& other) const;  ///< Takes the same time whatever differs.
};

/// The secret of one lease: who knows it is the holder. Has no stream operator, on purpose.
class LeaseKey {
public:
    using Bytes = std::array<std::uint8_t, 16>;

    explicit LeaseKey(const Bytes& bytes) : bytes_(bytes) {}

    [[nodiscard]] static LeaseKey random();
    [[nodiscard]] KeyHash hash() const;
    /// 32 hexadecimal digits. The caller decides who may see them.
    [[nodiscard]] std::string reveal() const;

    [[nodiscard]] bool operator==(const LeaseKey&) const = default;

private:
    Bytes bytes_;
};

/// What proves a holder: `<lock_id>.<lease_key>`, the word `lease` in flags, JSON and HOLDFAST_LEASE.
struct Credentials {
    LockId lock_id{};
    LeaseKey key;

    [[nodiscard]] static Credentials random() { return {LockId::random(), LeaseKey::random()}; }
    /// Refused with `usage`; the message never repeats the text, which may hold a secret.
    [[nodiscard]] static Result<Credentials> parse(std::string_view text);
    [[nodiscard]] std::string reveal() const { return lock_id.text() + "." + key.reveal(); }

    [[nodiscard]] bool operator==(const Credentials&) const = default;
};

/// The fencing token: rises with every grant of a lock and never comes back. Zero: never granted.
struct FencingToken {
    static constexpr std::uint64_t limit = std::uint64_t{1} << 53;  ///< Exact as a double, too.

    std::uint64_t value = 0;
    [[nodiscard]] auto operator<=>(const FencingToken&) const = default;
};

/// How long a grant or a renewal lasts: 50 ms to 366 days.
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

/// Who holds: a process (`host:user:pid:start_time`) or what the caller says, and for whom.
struct Holder {
    std::string text{};
    std::string user{};  ///< Optional: the person on whose behalf.

    /// This process.
    [[nodiscard]] static Holder this_process();
    /// `ci@web-3 (pid 812)` for a process, the text itself otherwise.
    [[nodiscard]] std::string display() const;

    [[nodiscard]] bool operator==(const Holder&) const = default;
};

/// One grant of a lock, as anybody may see it.
struct Lease {
    LockId lock_id{};
    FencingToken token{};
    Holder holder{};
    std::string operation{};
    std::string reason{};
    std::chrono::milliseconds ttl{0};  ///< Of the last grant or renewal.
    Instant acquired_at{};
    Instant renewed_at{};
    std::uint64_t renew_seq = 0;         ///< Counts renewals; an unchanged one means nobody renewed.
    Instant expires_at{};                ///< By the store's clock.
    std::optional<Instant> max_until{};  ///< No renewal goes beyond this.
    std::map<std::string, std::string> meta{};

    [[nodiscard]] bool operator==(const Lease&) const = default;
};

/// A wish to take a lock over, waiting for an answer. Its lock_id becomes the lease's on approval.
struct Override {
    LockId lock_id{};
    Holder asker{};
    std::string reason{};
    std::chrono::milliseconds ttl{0};
    Instant asked_at{};
    Instant expires_at{};  ///< After this nobody waits for the answer any more.

    [[nodiscard]] bool operator==(const Override&) const = default;
};

enum class LockState { free, held, expired };
[[nodiscard]] std::string_view name_of(LockState state);

/// One lock as the store saw it at `as_of`.
struct LockStatus {
    LockName name;
    LockState state = LockState::free;
    FencingToken token{};          ///< The highest this lock ever carried.
    std::optional<Lease> lease{};  ///< Absent when free.
    std::uint64_t waiters = 0;
    std::optional<Override> override_request{};
    std::uint64_t seq = 0;         ///< Of the newest audit event; 0 when the lock was never used.
    Digest chain{};                ///< The hash of that event.
    std::uint64_t pruned_seq = 0;  ///< Of the newest event that was pruned; 0 if none was.
    Instant as_of{};               ///< The store's clock when it looked.

    [[nodiscard]] bool operator==(const LockStatus&) const = default;
};

}  // namespace holdfast
