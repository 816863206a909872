#include "stores/etcd/recent.hpp"

#include <chrono>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// Later than this the node's clock is asked again: nobody knows what happened to it meanwhile.
constexpr milliseconds good_for{5000};
constexpr std::size_t most_locks = 1024;

}  // namespace

std::optional<Moment> Recent::recall(BatchView& view) {
    if (view.wanted().size() != 1) return std::nullopt;
    const LockName& name = view.wanted().front().name;
    // Real time, because the node's clock runs in it.
    const Boottime now = host_clock().boottime();
    Lock lock;
    {
        const std::scoped_lock guard(mutex_);
        const auto found = locks_.find(name);
        if (found == locks_.end()) return std::nullopt;
        // Used once: whoever writes next remembers it again.
        lock = std::move(found->second);
        locks_.erase(found);
    }
    if (now - lock.heard_at > good_for) return std::nullopt;
    view.assume(std::move(lock.meta), std::move(lock.record));
    if (const auto judged = clock_.judges()) return Moment{*judged, milliseconds{0}};
    // The node looked at its clock after the request was sent and before the answer was heard. So it now shows at
    // least its time then plus what has passed since the answer, and at most the end of that second plus what has
    // passed since the request. Cut to seconds, like every other reading, lest the audit log goes back and forth.
    const Instant least = lock.moment.now + (now - lock.heard_at);
    const Instant most = lock.moment.now + lock.moment.resolution + (now - lock.sent_at);
    const Instant cut = std::chrono::floor<std::chrono::seconds>(least);
    return Moment{cut, most - cut};
}

void Recent::remember(const BatchView& view, KeyValue record, const Moment& moment, Boottime sent_at) {
    if (view.wanted().size() != 1 || !view.meta()) return;
    const LockName& name = view.wanted().front().name;
    const std::scoped_lock guard(mutex_);
    if (locks_.size() >= most_locks) locks_.clear();
    locks_.insert_or_assign(name, Lock{*view.meta(), std::move(record), moment, sent_at, host_clock().boottime()});
}

void Recent::forget(const LockName& name) {
    const std::scoped_lock guard(mutex_);
    locks_.erase(name);
}

}  // namespace holdfast::stores::etcd
