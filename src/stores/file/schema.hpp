#pragma once

#include "holdfast/lease.hpp"
#include "stores/file/folder.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::stores::file {

/// The folder of a store: a file `format` that says whose it is, a folder `locks`, and an empty file `used` once there
/// has been a lock.
struct StoreFolder {
    Folder dir;
    StoreId store_id{};

    /// Empty if there is nothing yet: no folder, or an empty one. Changes nothing.
    ///
    /// `store_unsafe` for a folder that others can write to or swap, `format_unsupported` for one with other
    /// content or a newer format, `record_corrupt` for a damaged format file.
    [[nodiscard]] static Result<std::optional<StoreFolder>> find(const std::string& path, Sync sync);

    /// Finds the store or creates it. Of several that create it at once, all get the same store.
    [[nodiscard]] static Result<StoreFolder> make(const std::string& path, Sync sync);

    /// Empty if no lock was ever used.
    [[nodiscard]] Result<std::optional<Folder>> locks() const { return dir.child("locks"); }

    /// Whether there has been a lock, so that a folder without locks tells whether somebody removed them.
    [[nodiscard]] bool was_used() const;
    /// Notes it for good, if that is possible.
    void mark_used() const;
};

}  // namespace holdfast::stores::file
