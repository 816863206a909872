#include "stores/file/wait.hpp"

#include "kernel/rebase.hpp"
#include "stores/file/ticket_queue.hpp"

namespace holdfast::stores::file {

using std::chrono::milliseconds;

namespace {

/// How much later the queue is read again for each waiter ahead, while the lock is open and nobody takes it.
/// Of a thousand waiters about seventy read it in a second.
constexpr milliseconds patience_per_place{100};

}  // namespace

Result<std::optional<milliseconds>> Lookout::look(const LockFolder& lock) {
    const auto saved = lock.load();
    if (!saved) return std::unexpected(saved.error());
    const Instant now = clock_.wall();
    std::uint64_t seq = 0;
    std::optional<Lease> lease;
    if (*saved) {
        const auto record = kernel::rebase((*saved)->record, (*saved)->saved_under, kernel::mark_of(clock_), now);
        seq = record.seq;
        if (record.held) lease = record.held->lease;
    }
    if (lease && lease->lock_id == ticket_) return std::nullopt;
    if (may_be_first(seq, !lease || lease->expires_at <= now))
        if (auto read = read_queue(lock, seq, now); !read) return std::unexpected(read.error());
    return base::sleep_in_line(standing_, lease, now);
}

bool Lookout::may_be_first(std::uint64_t seq, bool is_open) const {
    if (read_at_ == Boottime::min()) return true;
    // A holder that comes and goes leaves two events, so fewer of them mean that somebody is still ahead, or
    // has gone without the lock, or died; and then the lock is found open.
    if (seq != seq_ && seq - seq_ >= 2 * ahead_) return true;
    const auto places = static_cast<milliseconds::rep>(ahead_);
    return is_open && clock_.boottime() - read_at_ >= patience_per_place * places;
}

Result<void> Lookout::read_queue(const LockFolder& lock, std::uint64_t seq, Instant now) {
    const auto queue = TicketQueue::load(lock.folder(), kernel::mark_of(clock_), now);
    if (!queue) return std::unexpected(queue.error());
    const auto ahead = queue->ahead_of(ticket_);
    standing_ = !ahead ? base::Standing::absent : *ahead == 0 ? base::Standing::first : base::Standing::behind;
    // A bell that was hung too late for its ticket has nobody else to take it down.
    if (!ahead) bells_of(lock.folder()).take_down(ticket_);
    ahead_ = ahead.value_or(0);
    seq_ = seq;
    read_at_ = clock_.boottime();
    return {};
}

}  // namespace holdfast::stores::file
