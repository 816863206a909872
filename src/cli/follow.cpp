#include "cli/follow.hpp"

#include "cli/pattern.hpp"
#include "cli/show.hpp"
#include "cli/signals.hpp"
#include "json/documents.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{200};

}  // namespace

Follower::Follower(std::optional<LockName> name, std::string pattern)
    : name_(std::move(name)), pattern_(std::move(pattern)) {}

bool Follower::matches(const LockName& name) const {
    if (name_) return name == *name_;
    return cli::matches(pattern_, name);
}

Result<void> Follower::start(Store& store, Deadline deadline) { return reader_.skip_to_end(store, deadline); }

Result<std::vector<AuditEvent>> Follower::look(Store& store, Deadline deadline) {
    std::vector<AuditEvent> found;
    do {
        auto events = reader_.next(store, deadline);
        if (!events) return events;
        std::ranges::copy_if(std::make_move_iterator(events->begin()), std::make_move_iterator(events->end()),
                             std::back_inserter(found), [&](const AuditEvent& event) { return matches(event.name); });
    } while (!reader_.is_at_end() && found.empty());
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
        // Flush, so that a reader sees each event at once; and notice that there is no reader any more.
        if (context.out.flush() != 0 || Output::nobody_reads()) return 0;
        signals.sleep(poll_interval);
        const auto events = follower.look(**store, context.soon());
        // A store that is away for a moment does not end this.
        if (!events && events.error().code != Errc::store_unavailable) return std::unexpected(events.error());
        if (!events) continue;
        for (const AuditEvent& event : *events) print_event(context.out, event);
    }
    return signals.exit_status();
}

}  // namespace holdfast::cli
