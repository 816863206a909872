#pragma once

#include "kernel/record.hpp"
#include "stores/common/batch.hpp"
#include "stores/common/lock_cache.hpp"
#include "stores/common/server_clock.hpp"

#include <atomic>
#include <span>

/// Most requests are about a lock that nobody else has touched since this process used it, or that was never used. Then
/// a batch can be decided from the cache, and written in one round trip without reading first. A prediction is never an
/// answer: the store compares it with what is there and with its clock, and changes nothing unless it was right.
namespace holdfast::stores {

/// True if the cached state decides this request and repeating it is idempotent.
[[nodiscard]] bool is_predictable(const Request& request);

/// True if no lease has run out, and the clock does not show less than the time of the lock's last event.
[[nodiscard]] bool is_settled(const kernel::Record& record, Instant now);

/// `now`, or the time of the lock's last event, if a predicted clock was a moment ahead when that was written. So the
/// events of a lock stay in the order of time. The lease counts from that moment and cannot end early; in a batch with
/// other locks it could end theirs, so this is for batches of one lock, or for those that take over no lease.
[[nodiscard]] Instant not_before(const kernel::Record& record, Instant now);

/// True if every request was granted and every lock's record is written: then comparing the records proves the whole
/// prediction.
[[nodiscard]] bool writes_every_record(std::span<const Reply> replies, const Batch& batch);

/// What a Store object predicts from. `Known` has a `record`, which is blank for a lock that was never used, and
/// whatever else the store needs in order to compare. May be used from any thread.
template <class Known>
class OptimisticState {
public:
    /// Empty if reading first is better. A lock that is not in the cache is predicted to be new, unless a prediction of
    /// that kind was wrong just now.
    [[nodiscard]] std::optional<Known> predict(const LockName& name) {
        if (auto known = locks_.find(name)) return *known;
        for (int left = reads_left_; left > 0;)
            if (reads_left_.compare_exchange_weak(left, left - 1)) return std::nullopt;
        return Known{kernel::blank(name)};
    }

    void remember(Known lock) {
        const LockName name = lock.record.name;
        locks_.remember(name, std::move(lock));
    }

    /// Others use the lock, too: it is read first until this process has changed it.
    void mark_contended(const LockName& name) { locks_.remember(name, std::nullopt); }

    [[nodiscard]] bool is_contended(const LockName& name) const {
        const auto known = locks_.find(name);
        return known && !*known;
    }

    /// A lock that was predicted to be new is not. Probably the next ones are not new either.
    void mispredicted_new_lock() { reads_left_ = reads_after_misprediction; }

    ServerClock clock{};

private:
    static constexpr int reads_after_misprediction = 32;

    LockCache<std::optional<Known>> locks_{};  ///< Empty: contended.
    std::atomic<int> reads_left_ = 0;          ///< How many more locks that are not in the cache are read first.
};

}  // namespace holdfast::stores
