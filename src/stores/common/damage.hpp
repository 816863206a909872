#pragma once

#include "base/frame.hpp"
#include "kernel/record.hpp"
#include "stores/common/batch.hpp"

#include <optional>
#include <vector>

/// For stores with sealed values: describes an unreadable lock for a Repair.
namespace holdfast::stores {

/// The stored parts of a lock.
struct Traces {
    std::optional<base::Bytes> record{};
    std::vector<base::Bytes> tickets{};
    std::optional<base::Bytes> newest{};  ///< Event in its log.
    std::optional<base::Bytes> oldest{};
    // What the store keeps beside them, as far as it does.
    FencingToken token{};
    std::uint64_t seq = 0;  ///< Of the newest event, readable or not.
};

/// `is_record_sound`: the record can be read, and agrees with what is kept beside it. Then the queue is what cannot.
[[nodiscard]] kernel::Damage damage_in(const Traces& traces, const LockName& name, bool is_record_sound, Instant now);

/// Tells `batch` what was found of a lock, with the damage if there is one and a Repair asks for it. `look` returns the
/// `Damage`, or the error that kept it from being seen.
template <class Look>
[[nodiscard]] Result<void> tell(Batch& batch, const Wanted& wanted, Result<LockView> view, Look look) {
    const bool is_damaged = !view && view.error().code == Errc::record_corrupt;
    if (!is_damaged || !wanted.repairs) {
        batch.found(wanted.name, std::move(view));
        return {};
    }
    Result<kernel::Damage> damage = look();
    if (!damage) return std::unexpected(damage.error());
    batch.found_damaged(wanted.name, std::move(view.error()), *std::move(damage));
    return {};
}

}  // namespace holdfast::stores
