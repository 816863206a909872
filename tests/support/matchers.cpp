#include "support/matchers.hpp"

#include <fmt/format.h>

namespace holdfast {

void PrintTo(const Error& error, std::ostream* out) { *out << row_of(error.code).name << ": " << error.message; }

void PrintTo(const LockStatus& status, std::ostream* out) {
    *out << fmt::format("{} {} token {} seq {} waiters {}", status.name.text(), name_of(status.state),
                        status.token.value, status.seq, status.waiters);
    if (const auto& lease = status.lease)
        *out << fmt::format(" lease {} token {} of {} renewed {} times until {}", lease->lock_id.text(),
                            lease->token.value, lease->holder.text, lease->renew_seq, to_rfc3339(lease->expires_at));
    if (const auto& ask = status.override_request) *out << " asked for by " << ask->asker.text;
    *out << " as of " << to_rfc3339(status.as_of);
}

void PrintTo(const Outcome& outcome, std::ostream* out) {
    PrintTo(outcome.lock, out);
    if (outcome.stolen_from) *out << " stolen from " << outcome.stolen_from->holder.text;
}

void PrintTo(const Reply& reply, std::ostream* out) {
    if (!reply) return PrintTo(reply.error(), out);
    PrintTo(*reply, out);
}

void PrintTo(const AuditEvent& event, std::ostream* out) {
    *out << fmt::format("{} #{} {} token {} of {} at {}", event.name.text(), event.seq, name_of(event.kind),
                        event.token.value, event.holder.text, to_rfc3339(event.at));
}

void PrintTo(Errc code, std::ostream* out) { *out << row_of(code).name; }
void PrintTo(LockState state, std::ostream* out) { *out << name_of(state); }
void PrintTo(EventKind kind, std::ostream* out) { *out << name_of(kind); }
void PrintTo(FencingToken token, std::ostream* out) { *out << token.value; }
void PrintTo(const LockName& name, std::ostream* out) { *out << name.text(); }

}  // namespace holdfast
