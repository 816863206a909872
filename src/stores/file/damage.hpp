#pragma once

#include "stores/file/codec.hpp"
#include "stores/file/folder.hpp"

#include <optional>

namespace holdfast::stores::file {

/// A lock whose record cannot be read.
struct DamagedLock {
    kernel::Damage damage;
    SavedLock saved;  ///< Replaces the record: it continues from the rest of the log.
};

/// Looks at what is left in the folder of the lock. With its guard only.
[[nodiscard]] Result<DamagedLock> look_at_damage(const Folder& folder, const LockName& name);

/// Keeps a copy of the record that cannot be read, beside it, for an operator to look at.
[[nodiscard]] Result<void> keep_damaged(const Folder& folder, const kernel::Damage& damage, Instant now);

}  // namespace holdfast::stores::file
