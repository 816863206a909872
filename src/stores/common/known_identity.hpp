#pragma once

#include "holdfast/lease.hpp"

#include <mutex>
#include <optional>

namespace holdfast::stores {

/// What a Store object knows of the store in its database: as it was seen last. May be used from any thread.
///
/// An `Identity` has `store_id`, `was_used`, and `has_mark()`: without the mark, whether the store was used is not
/// known.
template <class Identity>
class KnownIdentity {
public:
    [[nodiscard]] std::optional<Identity> get() const {
        const std::scoped_lock lock(mutex_);
        return identity_;
    }
    [[nodiscard]] std::optional<StoreId> store_id() const {
        const std::scoped_lock lock(mutex_);
        return identity_ ? std::optional(identity_->store_id) : std::nullopt;
    }
    [[nodiscard]] bool was_used() const {
        const std::scoped_lock lock(mutex_);
        return identity_ && identity_->was_used;
    }

    void remember(const Identity& seen) {
        const std::scoped_lock lock(mutex_);
        // What was read before another client wrote the first lock may arrive after it.
        const bool was_used = identity_ && identity_->store_id == seen.store_id && identity_->was_used;
        identity_ = seen;
        identity_->was_used |= was_used && seen.has_mark();
    }
    void remember_use() {
        const std::scoped_lock lock(mutex_);
        if (identity_ && identity_->has_mark()) identity_->was_used = true;
    }

private:
    mutable std::mutex mutex_;
    std::optional<Identity> identity_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
