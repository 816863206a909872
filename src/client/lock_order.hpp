#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <atomic>
#include <cstdint>

namespace holdfast::client {

/// Which locks each thread of this process holds. Locks are taken in one order, by the `store_id` of the store and then
/// by name; a thread that waits against this order can deadlock, and one that waits for a lock of its own always does.
class LockOrder {
public:
    /// Marks a lock as held, or asked for, by a thread: at first by the one that entered it. Withdrawn by its
    /// destructor at the latest.
    ///
    /// `move_to` and moving are for its owner; the others may be called from any thread.
    class Registration {
    public:
        Registration(Registration&& other) noexcept;
        Registration& operator=(Registration&&) = delete;
        ~Registration();
        /// The store's id is known at the latest when the lock is granted.
        void set_store_id(const StoreId& store_id) const;
        /// The hold was moved. On the stack of this thread it counts for this thread; elsewhere for nobody, because
        /// any thread may be the next that works with it.
        void move_to(const void* place);
        /// This thread works with it, and it counts for this thread if it counts for nobody.
        void take_into_use();
        void withdraw();

    private:
        friend class LockOrder;
        explicit Registration(std::uint64_t id) : id_(id) {}
        std::atomic<std::uint64_t> id_;  ///< 0: it is not checked, or was withdrawn.
        std::atomic<bool> counts_for_nobody_ = false;
    };

    /// Registers the lock for the calling thread. `usage` if that thread would wait against the order; one that does
    /// not wait cannot deadlock. The store is asked for its id only if a thread that waits holds a lock on another
    /// store.
    [[nodiscard]] static Result<Registration> enter(Store& store, const LockName& name, bool waits,
                                                    const HoldOptions& options);
};

}  // namespace holdfast::client
