#include "holdfast/error.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace holdfast {
namespace {

// The order is that of docs/reference/errors.md: by exit status.
constexpr std::array rows{
    ErrorRow{Errc::usage, "E_USAGE", 64, 400, "The call can never work as it stands; fix it."},
    ErrorRow{Errc::name_invalid, "E_NAME_INVALID", 64, 400, "No lock can have this name; fix the call."},
    ErrorRow{Errc::data_invalid, "E_DATA_INVALID", 65, 422,
             "A data file cannot be read as what its table needs. Nothing was changed."},
    ErrorRow{Errc::store_unavailable, "E_STORE_UNAVAILABLE", 69, 503,
             "The store was not reached and nothing was changed; it is safe to try again."},
    ErrorRow{Errc::outcome_unknown, "E_OUTCOME_UNKNOWN", 70, 504,
             "The request was sent and never answered; repeat it with the same lock_id, or look."},
    ErrorRow{Errc::lock_conflict, "E_LOCK_CONFLICT", 75, 423,
             "Somebody else holds the lock or is first in line, or the wait ran out."},
    ErrorRow{Errc::timed_out, "E_TIMED_OUT", 75, 0,
             "Of the library: the lock could not be had before the wait ran out."},
    ErrorRow{Errc::cancelled, "E_CANCELLED", 75, 0, "Of the library: the caller ended the wait. Nothing is held."},
    ErrorRow{Errc::lock_expired, "E_LOCK_EXPIRED", 76, 410,
             "Your lease ran out; stop touching the resource and acquire again."},
    ErrorRow{Errc::denied, "E_DENIED", 77, 403, "Not permitted."},
    ErrorRow{Errc::config, "E_CONFIG", 78, 500, "The configuration cannot be read or contradicts itself."},
    ErrorRow{Errc::store_unsafe, "E_STORE_UNSAFE", 78, 500, "The store cannot keep Holdfast's promise where it is."},
    ErrorRow{Errc::format_unsupported, "E_FORMAT_UNSUPPORTED", 78, 500,
             "The store was written by a newer Holdfast, or by something else."},
    ErrorRow{Errc::lock_not_held, "E_LOCK_NOT_HELD", 79, 404,
             "Nothing is there to renew, release or break, or it is not yours."},
    ErrorRow{Errc::fencing_mismatch, "E_FENCING_MISMATCH", 80, 412,
             "The token is stale: a newer holder was here. Nothing was published."},
    ErrorRow{Errc::token_regressed, "E_TOKEN_REGRESSED", 80, 412,
             "The resource has seen a newer token than the store. Nothing was published."},
    ErrorRow{Errc::consistency_unavailable, "E_CONSISTENCY_UNAVAILABLE", 81, 0,
             "The tree changed while it was being copied."},
    ErrorRow{Errc::partial_snapshot, "E_PARTIAL_SNAPSHOT", 82, 0, "The snapshot was never finished."},
    ErrorRow{Errc::migration_failed, "E_MIGRATION_FAILED", 83, 0,
             "A migration file cannot be read, or the database refused a statement of it."},
    ErrorRow{Errc::migration_dirty, "E_MIGRATION_DIRTY", 83, 0, "A migration stopped half way and needs a decision."},
    ErrorRow{Errc::migration_checksum, "E_MIGRATION_CHECKSUM", 83, 0,
             "A migration file was edited after it was applied."},
    ErrorRow{Errc::migration_order, "E_MIGRATION_ORDER", 83, 0, "A migration would run out of order."},
    ErrorRow{Errc::drift, "E_DRIFT", 83, 0, "The schema is not what the migrations made."},
    ErrorRow{Errc::audit_chain_broken, "E_AUDIT_CHAIN_BROKEN", 84, 0, "The audit log was altered or cut."},
    ErrorRow{Errc::payload_hash_mismatch, "E_PAYLOAD_HASH_MISMATCH", 84, 0, "Stored content is not what was stored."},
    ErrorRow{Errc::record_corrupt, "E_RECORD_CORRUPT", 84, 500,
             "A stored record cannot be read; its lock stays blocked until it is repaired."},
};

}  // namespace

std::span<const ErrorRow> error_table() { return rows; }

const ErrorRow& row_of(Errc code) {
    const auto* row = std::ranges::find(rows, code, &ErrorRow::code);
    if (row == rows.end()) std::abort();  // A code without a row is a broken invariant, not a state.
    return *row;
}

}  // namespace holdfast
