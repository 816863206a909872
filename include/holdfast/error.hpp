#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] holdfast {

struct LockStatus;

/// Every way a call can end without success. `lock_conflict` is `E_LOCK_CONFLICT` in HTTP, CLI and
/// logs; a number never changes its meaning and is never used again.
///
/// A code exists only if a caller would act differently on it; its comment says how. Three endings must be kept apart,
/// and no layer turns one into another: a request was refused (`lock_conflict`, `lock_expired`, …: nothing changed), it
/// never reached the store (`store_unavailable`: nothing changed), or nobody knows (`outcome_unknown`).
///
/// The row of each code (exit status, HTTP status, meaning) is in `error_table()`, which is the one
/// place to look it up; `docs/reference/errors.md` is held to that table by a test.
enum class Errc : std::uint16_t {
    lock_conflict = 1,             ///< Another lease is live, or somebody is first in line. Wait, or give up.
    lock_expired = 2,              ///< Yours ran out. Stop touching the resource.
    lock_not_held = 3,             ///< Nothing of yours is there to renew, release or break.
    fencing_mismatch = 4,          ///< A newer holder was here first. Nothing was written.
    outcome_unknown = 5,           ///< Sent, never answered. Repeat with the same lock_id, or look.
    store_unavailable = 6,         ///< Never reached the store. Safe to try again.
    name_invalid = 7,              ///< No lock can have this name. Fix the call.
    usage = 8,                     ///< The call can never work. Fix the call.
    denied = 9,                    ///< Not permitted. Ask somebody who may.
    config = 10,                   ///< The configuration cannot be read or contradicts itself. Fix it.
    store_unsafe = 11,             ///< The store cannot keep the promise here. Choose another, or accept it aloud.
    format_unsupported = 12,       ///< Written by a newer Holdfast, or not by Holdfast. Upgrade, or look elsewhere.
    token_regressed = 13,          ///< The resource has seen a newer token than the store. Find out what was restored.
    consistency_unavailable = 14,  ///< The tree changed while it was copied. Quiesce it and repeat.
    partial_snapshot = 15,         ///< The snapshot was never finished. Choose another.
    migration_dirty = 16,          ///< A migration stopped half way. Repair it.
    migration_checksum = 17,       ///< An applied migration file was edited. Restore the file.
    migration_order = 18,          ///< A migration would run out of order. Decide.
    drift = 19,                    ///< The schema is not what the migrations made. Decide.
    audit_chain_broken = 20,       ///< The audit log was altered or cut. Find out by whom.
    payload_hash_mismatch = 21,    ///< Stored content is not what was stored. Restore it.
    record_corrupt = 22,           ///< A stored record cannot be read. The lock stays blocked until it is repaired.
    migration_failed = 23,         ///< A migration cannot be read, or the database refused it. Correct the file.
    data_invalid = 24,             ///< A data file does not fit its table. Correct the file.
    timed_out = 25,                ///< Another lease was live until the wait ran out. Wait longer, or give up.
    cancelled = 26,                ///< The caller ended the wait. Nothing is held, and no place in the queue is left.
};

/// What users see of one code.
struct ErrorRow {
    Errc code;
    std::string_view name;     ///< `E_LOCK_CONFLICT`
    int exit_status;           ///< Of the command line.
    int http_status;           ///< Of the daemon; 0 where the code cannot occur there.
    std::string_view meaning;  ///< One sentence, for people.
};

/// All codes, in the order of the documentation.
[[nodiscard]] std::span<const ErrorRow> error_table();

/// The row of `code`. Every code has one.
[[nodiscard]] const ErrorRow& row_of(Errc code);

/// A call that did not succeed. Programs read `code`, people read `message`: its words may change at any time.
///
/// A message may repeat what other users wrote (names, holders, reasons), so it is escaped before it is shown on a
/// terminal. It never contains a password or a lease key.
struct Error {
    Errc code;
    std::string message;  ///< Who, since when, what to do next. Never a secret.
    /// The lock as it stood when the call was refused, where that helps: on a conflict, who is there.
    /// Shared because errors are copied freely, and `LockStatus` is not known to this header.
    std::shared_ptr<const LockStatus> holder = nullptr;
    /// When asking again may help: on a conflict, until the lease ends. Not a promise.
    std::optional<std::chrono::milliseconds> retry_after = std::nullopt;
    std::string hint = {};  ///< What to do next, where the code alone does not tell.
    /// With `store_unavailable`: the server was reached, and what this Store object knew there was removed or is
    /// another store now. Its leases are lost, which a store that is merely away does not mean.
    bool store_is_lost = false;
};

/// A value, or why there is none. Refusals are values, not exceptions: Holdfast throws nothing of its own.
template <class T>
using Result = std::expected<T, Error>;

/// Shorthand for `return std::unexpected(Error{...})`.
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string message) {
    return std::unexpected(Error{code, std::move(message)});
}

}  // namespace holdfast
