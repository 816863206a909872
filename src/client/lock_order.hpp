#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <cstdint>

namespace holdfast::client {

/// Which locks each thread of this process holds. Locks are taken in one order, by the `store_id` of the store and then
/// by name; a thread that waits against this order can deadlock, and one that waits for a lock of its own always does.
class LockOrder {
public:
    /// Marks a lock as held, or asked for, by the thread that entered it. Withdrawn by its destructor at the latest.
    class Registration {
    public:
        Registration(Registration&& other) noexcept;
        Registration& operator=(Registration&&) = delete;
        ~Registration();
        /// The store's id is known at the latest when the lock is granted.
        void set_store_id(const StoreId& store_id) const;
        void withdraw();

    private:
        friend class LockOrder;
        explicit Registration(std::uint64_t id) : id_(id) {}
        std::uint64_t id_;
    };

    /// Registers the lock for the calling thread. `usage` if that thread would wait against the order; one that does
    /// not wait cannot deadlock. The store is asked for its id only if a thread that waits holds a lock on another
    /// store.
    [[nodiscard]] static Result<Registration> enter(Store& store, const LockName& name, bool waits, const Clock& clock);
};

}  // namespace holdfast::client
