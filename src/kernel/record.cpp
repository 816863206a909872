#include "kernel/record.hpp"

#include <algorithm>

namespace holdfast::kernel {

void Damage::saw_newest(const AuditEvent& event) {
    token = std::max(token, event.token);
    if (event.seq < seq) return;
    seq = event.seq;
    chain = event.hash;
}

void Damage::saw_oldest(const AuditEvent& event) { pruned_seq = std::max<std::uint64_t>(event.seq, 1) - 1; }

LockStatus unreadable_status(const LockName& name, Instant now) {
    LockStatus status{.name = name};
    status.state = LockState::unreadable;
    status.as_of = now;
    return status;
}

Record blank(LockName name) { return Record{.name = std::move(name)}; }

LockStatus status_of(const Record& record, std::uint64_t waiters, Instant now) {
    LockStatus status{.name = record.name};
    status.token = record.token;
    status.waiters = waiters;
    status.seq = record.seq;
    status.chain = record.chain;
    status.pruned_seq = record.pruned_seq;
    status.as_of = now;
    if (record.held) {
        status.lease = record.held->lease;
        const bool is_held = record.held->lease.expires_at > now;
        status.state = is_held ? LockState::held : LockState::expired;
    }
    if (record.pending && record.pending->ask.expires_at > now) status.override_request = record.pending->ask;
    return status;
}

}  // namespace holdfast::kernel
