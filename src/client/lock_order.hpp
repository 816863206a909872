#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <cstdint>

namespace holdfast::client {

/// Which locks each thread of this process holds. Locks are taken in one order, by the `store_id` of the store and then
/// by name; a thread that waits against it can deadlock, and one that waits for itself surely does.
class LockOrder {
public:
    /// A lock's entry in the books. Leaves when destroyed, at the latest.
    class Place {
    public:
        Place(Place&& other) noexcept;
        Place& operator=(Place&&) = delete;
        ~Place();
        /// Notes the store's id, which is known at the latest when the lock is granted.
        void note(const StoreId& store_id) const;
        void leave();

    private:
        friend class LockOrder;
        explicit Place(std::uint64_t id) : id_(id) {}
        std::uint64_t id_;
    };

    /// `usage` if the calling thread would wait against the order. A thread that does not wait cannot deadlock. The
    /// store is asked for its id only where a waiting thread holds a lock on another store already.
    [[nodiscard]] static Result<Place> enter(Store& store, const LockName& name, bool waits, const Clock& clock);
};

}  // namespace holdfast::client
