#pragma once

#include "holdfast/lease.hpp"
#include "stores/file/folder.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::stores::file {

/// The folder of a store: a file `format` with the format and the store's id, a folder `locks`, and an empty file
/// `used` once there has been a lock.
struct StoreFolder {
    Folder dir;
    StoreId store_id{};
    bool is_old = false;  ///< Format 1: it can be read, and the first change upgrades it.

    /// Empty if there is nothing yet: no folder, or an empty one. Changes nothing.
    ///
    /// Refused with `store_unsafe` if others can write to the folder or swap it, with `format_unsupported` if it has
    /// other content or a newer format, and with `record_corrupt` if the format file is damaged.
    [[nodiscard]] static Result<std::optional<StoreFolder>> find(const std::string& path, Sync sync);

    /// Finds the store or creates it. Processes that create it at the same time get the same store.
    [[nodiscard]] static Result<StoreFolder> make(const std::string& path, Sync sync);

    /// Gives a store of an older format ours: from then on older programs are refused. Any number of processes may do
    /// so at once.
    [[nodiscard]] Result<void> upgrade();

    /// Empty if no lock was ever used.
    [[nodiscard]] Result<std::optional<Folder>> locks() const { return dir.child("locks"); }

    /// Whether there has ever been a lock. If so, a store without locks is one from which they were removed.
    [[nodiscard]] bool was_used() const;
    /// Makes that durable, if possible.
    void mark_used() const;
};

}  // namespace holdfast::stores::file
