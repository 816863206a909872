#pragma once

#include "holdfast/lease.hpp"

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace holdfast::stores {

/// What a Store object remembers of the locks that it used last. May be used from any thread.
///
/// There are two generations: when the newer one is full, the older one is dropped and the newer one takes its place.
/// So memory is bounded, and a lock in use stays, without a list to keep in order at every use.
template <class State>
class LockCache {
public:
    explicit LockCache(std::size_t generation_size = 4096) : generation_size_(generation_size) {}

    [[nodiscard]] std::optional<State> find(const LockName& name) const {
        const std::scoped_lock lock(mutex_);
        for (const Generation* generation : {&newer_, &older_})
            if (const auto found = generation->find(name.text()); found != generation->end()) return found->second;
        return std::nullopt;
    }

    void remember(const LockName& name, State state) {
        const std::scoped_lock lock(mutex_);
        if (newer_.size() >= generation_size_) {
            older_ = std::move(newer_);
            newer_.clear();
        }
        newer_.insert_or_assign(name.text(), std::move(state));
    }

    void forget(const LockName& name) {
        const std::scoped_lock lock(mutex_);
        newer_.erase(name.text());
        older_.erase(name.text());
    }

private:
    using Generation = std::unordered_map<std::string, State>;

    const std::size_t generation_size_;
    mutable std::mutex mutex_;
    Generation newer_{};  ///< Guarded by mutex_.
    Generation older_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
