#pragma once

#include "kernel/record.hpp"

#include <mutex>
#include <string>
#include <unordered_map>

namespace holdfast::stores::mysql {

/// What this Store object can say about locks without asking. May be used by any thread.
class Memory {
public:
    struct Known {
        kernel::Record record;  ///< Blank for a lock that was never used.
        Instant written_at{};   ///< With the record it gives the exact value that the store has.
    };

    /// Absent if it is better to read. A lock of which nothing is known is taken for one that was never used, unless
    /// that was wrong just now.
    [[nodiscard]] std::optional<Known> guess(const LockName& name);
    void remember(Known lock);
    /// Others use it, too.
    void avoid(const LockName& name);
    /// A lock that was taken for a new one is not.
    void took_for_new();

private:
    using Locks = std::unordered_map<std::string, std::optional<Known>>;
    void keep(const std::string& name, std::optional<Known> lock);

    std::mutex mutex_;
    /// Guarded by mutex_. When the newer ones have become too many, the older ones go and they take their place.
    Locks newer_{};
    Locks older_{};
    int reads_first_ = 0;  ///< Guarded by mutex_. How many more unknown locks are not guessed at.
};

}  // namespace holdfast::stores::mysql
