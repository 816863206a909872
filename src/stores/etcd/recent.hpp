#pragma once

#include "stores/etcd/batch_view.hpp"

#include <map>
#include <mutex>

namespace holdfast::stores::etcd {

/// What can be said about locks without asking: this Store object remembers those that it changed last, as it left
/// them; and who has met nothing but new locks takes the next one for new, too.
///
/// A guess saves the look before a change. It is never an answer: the transaction compares everything that was guessed,
/// and changes nothing if any of it is not so. May be used from any thread.
class Recent {
public:
    /// Fills `view` as if it had been read just now. False if too much is needed or too little is known.
    [[nodiscard]] bool guess(BatchView& view, std::span<const Request> requests, const KeyValue& meta);

    /// `record` is what was written of the lock; `is_quiet` if nobody waits for it.
    void remember(const LockName& name, KeyValue record, bool is_quiet);
    void forget(const LockName& name);

    /// What somebody saw who was handed the lock: so much it needs to hand it on.
    struct Succession {
        KeyValue record{};
        KeyValue next{};  ///< The first in line.
    };
    void expect_release(const LockId& holder, Succession succession);

    /// What was read: whether those that could have been new were.
    void learn(const BatchView& view);

private:
    struct Lock {
        KeyValue record{};
        bool is_quiet = false;
    };
    using Locks = std::map<LockName, Lock>;

    /// What is known of a lock that is asked for once. Needs mutex_.
    [[nodiscard]] std::optional<Assumed> take_succession(const Request& request);
    [[nodiscard]] const Lock* find(const LockName& name) const;
    void erase(const LockName& name);

    std::mutex mutex_;
    // All of these are guarded by mutex_. When the newer ones have become too many, the older ones go and they take
    // their place.
    Locks newer_{};
    Locks older_{};
    std::map<LockId, Succession> successions_{};
    std::size_t new_in_a_row_ = 0;
};

}  // namespace holdfast::stores::etcd
