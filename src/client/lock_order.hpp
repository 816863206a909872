#pragma once

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <string>
#include <utility>

namespace holdfast::client {

/// Which locks each thread of this process holds. Locks are taken in one order, by store and then by
/// name; a thread that waits against it can deadlock, and one that waits for itself surely does.
class LockOrder {
public:
    using Key = std::pair<std::string, LockName>;

    /// A lock's entry in the books. Leaves when destroyed, at the latest.
    class Place {
    public:
        Place(Place&& other) noexcept;
        Place& operator=(Place&&) = delete;
        ~Place();
        void leave();

    private:
        friend class LockOrder;
        explicit Place(std::uint64_t id) : id_(id) {}
        std::uint64_t id_;
    };

    /// `usage` if the calling thread would wait against the order. Who does not wait cannot deadlock.
    [[nodiscard]] static Result<Place> enter(const std::string& store, const LockName& name, bool waits);
};

}  // namespace holdfast::client
