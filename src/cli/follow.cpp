#include "cli/follow.hpp"

#include "cli/show.hpp"
#include "cli/signals.hpp"
#include "json/documents.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <tuple>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

/// Only what changed lately is listed, or following thousands of idle locks would keep the store busy.
/// Clocks of stores can be stepped, so there is some slack, and now and then everything is listed.
constexpr std::chrono::seconds slack{60};
constexpr unsigned full_look_every = 20;

constexpr milliseconds poll_interval{200};

}  // namespace

Follower::Follower(std::optional<LockName> name, std::string pattern)
    : name_(std::move(name)), pattern_(std::move(pattern)) {}

bool Follower::matches(const LockName& name) const {
    if (name_) return name == *name_;
    return pattern_.empty() || fnmatch(pattern_.c_str(), name.text().c_str(), 0) == 0;
}

ListQuery Follower::query() const {
    ListQuery query;
    query.prefix = name_ ? name_->text() : pattern_.substr(0, pattern_.find_first_of("*?[\\"));
    query.with_free = true;
    return query;
}

void Follower::seen(const AuditEvent& event) {
    std::uint64_t& last = last_seq_[event.name];
    last = std::max(last, event.seq);
    newest_ = std::max(newest_.value_or(event.at), event.at);
}

Result<void> Follower::start(Store& store, Deadline deadline) {
    const auto locks = store.list(query(), deadline);
    if (!locks) return std::unexpected(locks.error());
    for (const LockStatus& lock : *locks) {
        last_seq_[lock.name] = lock.seq;
        newest_ = std::max(newest_.value_or(lock.as_of), lock.as_of);
    }
    return {};
}

Result<std::vector<AuditEvent>> Follower::look(Store& store, Deadline deadline) {
    ListQuery what = query();
    if (newest_ && ++looks_ % full_look_every != 0) what.changed_since = *newest_ - slack;
    const auto locks = store.list(what, deadline);
    if (!locks) return std::unexpected(locks.error());

    std::vector<AuditEvent> found;
    for (const LockStatus& lock : *locks) {
        const std::uint64_t last = last_seq_[lock.name];
        if (!matches(lock.name) || lock.seq == last) continue;
        // A store that was wiped or restored begins again with 1.
        HistoryQuery since{.name = lock.name, .after_seq = lock.seq > last ? last : 0};
        const auto events = store.history(since, deadline);
        if (!events) return std::unexpected(events.error());
        found.insert(found.end(), events->begin(), events->end());
        last_seq_[lock.name] = 0;
    }
    for (const AuditEvent& event : found) seen(event);
    std::ranges::stable_sort(found, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
    return found;
}

void print_event(Output& out, const AuditEvent& event) {
    if (out.style().json) {
        out.document(json::event(event).done());
    } else {
        out.line(line_of(event));
    }
}

Result<int> follow(Context& context, Follower& follower, const std::vector<AuditEvent>& first) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const StopOnSignal signals;
    for (const AuditEvent& event : first) print_event(context.out, event);
    while (signals.signal() == 0) {
        // Whoever reads sees each event at once, or is gone.
        if (context.out.flush() != 0 || Output::nobody_reads()) return 0;
        signals.sleep(poll_interval);
        const auto events = follower.look(**store, context.soon());
        // A store that is away for a moment is no reason to stop following it.
        if (!events && events.error().code != Errc::store_unavailable) return std::unexpected(events.error());
        if (!events) continue;
        for (const AuditEvent& event : *events) print_event(context.out, event);
    }
    return signals.exit_status();
}

}  // namespace holdfast::cli
