#include "client/verify.hpp"

#include "holdfast/audit.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace holdfast::client {
namespace {

constexpr std::chrono::seconds call_limit{10};
/// How often a lock is read again because its log was pruned meanwhile.
constexpr int most_attempts = 20;
/// How many of the oldest and of the newest events are searched for locks that the store does not know.
constexpr std::size_t sample = 1000;

class Verifier {
public:
    Verifier(Store& store, const Clock& clock) : store_(store), clock_(clock), was_used_(store.info().was_used) {}

    Result<void> lock(const LockName& name) {
        for (int attempt = 0; attempt < most_attempts; ++attempt) {
            // The lock is read before its log: all events up to there are in the log, however many follow.
            const auto status = store_.inspect(name, soon());
            if (!status) return std::unexpected(status.error());
            const auto events = up_to(*status);
            const Result<void> chain = events ? verify_chain(*events, *status) : std::unexpected(events.error());
            if (chain) {
                total_.events += events->size();
                if (status->seq > 0) ++total_.locks;
                return {};
            }
            if (chain.error().code != Errc::audit_chain_broken) return chain;
            // Only pruning takes events away.
            const auto again = store_.inspect(name, soon());
            if (!again) return std::unexpected(again.error());
            if (again->pruned_seq == status->pruned_seq) return chain;
        }
        return fail(Errc::store_unavailable,
                    fmt::format("the log of {} was pruned whenever it was read; nothing is known of it", name.text()));
    }

    Result<void> all() {
        const auto locks = store_.list({.with_free = true}, soon());
        if (!locks) return std::unexpected(locks.error());
        std::set<LockName> known;
        for (const LockStatus& status : *locks) {
            known.insert(status.name);
            if (auto verified = lock(status.name); !verified) return verified;
        }
        for (const auto which : {HistoryQuery::Which::oldest, HistoryQuery::Which::newest})
            if (auto found = expect_all_known(known, which); !found) return found;
        return {};
    }

    /// Every lock keeps its newest event, so where events were found the store was not emptied.
    Result<void> expect_not_emptied() {
        if (!was_used_ || total_.events > 0) return {};
        const auto locks = store_.list({.with_free = true, .limit = 1}, soon());
        if (!locks) return std::unexpected(locks.error());
        if (!locks->empty()) return {};
        return fail(Errc::audit_chain_broken,
                    fmt::format("the store knows that it was used, and has neither locks nor events: they were removed "
                                "from {} by hand. Restore a backup to see what happened; the next lock begins anew",
                                printable(store_.info().url)));
    }

    [[nodiscard]] Verified total() const { return total_; }

private:
    [[nodiscard]] Deadline soon() const { return Deadline::in(clock_, call_limit); }

    /// The events that `status` counts. All of them for a lock that was never used.
    Result<std::vector<AuditEvent>> up_to(const LockStatus& status) {
        auto events = store_.history({.name = status.name}, soon());
        if (!events) return events;
        if (status.seq == 0 && !events->empty())
            if (auto known = expect_known(status.name); !known) return std::unexpected(known.error());
        std::erase_if(*events, [&](const AuditEvent& event) { return event.seq > status.seq; });
        return events;
    }

    /// A record is written together with its events: if there are events, it must be there by now.
    Result<void> expect_known(const LockName& name) {
        const auto status = store_.inspect(name, soon());
        if (!status) return std::unexpected(status.error());
        if (status->seq > 0) return {};
        return fail(Errc::audit_chain_broken,
                    fmt::format("the audit log has events of {}, and the store knows no such lock: its record is gone",
                                name.text()));
    }

    Result<void> expect_all_known(std::set<LockName>& known, HistoryQuery::Which which) {
        const auto events = store_.history({.limit = sample, .which = which}, soon());
        if (!events) return std::unexpected(events.error());
        for (const AuditEvent& event : *events)
            if (known.insert(event.name).second)
                if (auto found = expect_known(event.name); !found) return found;
        return {};
    }

    Store& store_;
    const Clock& clock_;
    /// Read before the locks are: with the first of them this becomes true.
    const bool was_used_;
    Verified total_{};
};

}  // namespace

Result<Verified> verify(Store& store, const std::optional<LockName>& name, const Clock& clock) {
    Verifier verifier(store, clock);
    const auto verified = name ? verifier.lock(*name) : verifier.all();
    if (!verified) return std::unexpected(verified.error());
    if (auto filled = verifier.expect_not_emptied(); !filled) return std::unexpected(filled.error());
    return verifier.total();
}

}  // namespace holdfast::client
