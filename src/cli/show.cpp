#include "cli/show.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace holdfast::cli {
namespace {

Colour colour_of(LockState state) {
    switch (state) {
        case LockState::free: return Colour::green;
        case LockState::held: return Colour::yellow;
        case LockState::expired:
        case LockState::unreadable: return Colour::red;
    }
    return Colour::none;
}

std::string expiry(const Lease& lease, Instant as_of) {
    return lease.expires_at > as_of ? "in " + to_words(lease.expires_at - as_of)
                                    : to_words(as_of - lease.expires_at) + " ago";
}

const std::string stale_words = "may be stale: nothing can be changed where this was read";

/// Without the seconds that nobody plans with.
std::string roughly(std::chrono::milliseconds time) {
    using std::chrono::minutes;
    return to_words(time < minutes{2} ? time : std::chrono::round<minutes>(time));
}

/// Through a daemon: where it came from, and who sent it if that is somebody else. What the actor tells is not
/// repeated.
std::string sender_of(const AuditEvent& event) {
    std::string text;
    const auto add = [&](const char* key) {
        const auto found = event.details.find(key);
        if (found == event.details.end() || event.actor.find(found->second) != std::string::npos) return;
        text += fmt::format("  {} {}", key, printable(found->second));
    };
    add("by");
    add("address");
    return text;
}

/// `numbers` and `what` stand for those of one event, or of several.
std::string line_with(const AuditEvent& event, const std::string& numbers, const std::string& what) {
    std::string text = fmt::format("{}  {}  {}  {}  {}  token {}", to_rfc3339(event.at), printable(event.name.text()),
                                   numbers, what, who(event.holder), event.token.value);
    if (!event.actor.empty()) text += fmt::format("  by {}", printable(Holder{event.actor, ""}.display()));
    if (!event.reason.empty()) text += fmt::format("  ({})", printable(event.reason));
    if (const auto from = event.details.find("from_holder"); from != event.details.end())
        text += fmt::format("  from {}", printable(Holder{from->second, ""}.display()));
    return text + sender_of(event);
}

}  // namespace

std::string who(const Holder& holder) {
    const std::string process = printable(holder.display());
    return holder.user.empty() ? process : fmt::format("{} for {}", process, printable(holder.user));
}

std::string sentence(const LockStatus& status) {
    const std::string name = printable(status.name.text());
    if (!status.lease) return name + " is free";
    const Lease& lease = *status.lease;
    std::string text = fmt::format("{} is held by {} since {}", name, who(lease.holder), to_rfc3339(lease.acquired_at));
    if (!lease.operation.empty()) text += fmt::format(", \"{}\"", printable(lease.operation));
    if (!lease.reason.empty()) text += fmt::format(" ({})", printable(lease.reason));
    return text + fmt::format(", {} {}, lock_id {}", status.state == LockState::held ? "expires" : "expired",
                              expiry(lease, status.as_of), lease.lock_id.text());
}

std::string usual_words(const LockStatus& status, const UsualHold& usual, std::optional<std::uint64_t> ahead) {
    std::string text;
    if (const auto held = time_held(status)) {
        text = fmt::format("held {}, usually {}", roughly(*held), roughly(usual.p50()));
        if (*held > usual.p95()) text += ", unusually long";
    } else {
        text = "usually held " + roughly(usual.p50());
    }
    if (!ahead) return text;
    return text + fmt::format("; about your turn in {}", roughly(usual.turn_in(status, *ahead)));
}

void show_lock(Output& out, const LockStatus& status, const StoreInfo& store, const std::optional<UsualHold>& usual) {
    const auto field = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) out.line(fmt::format("{:<11}{}", name, value));
    };
    field("name", printable(status.name.text()));
    field("state", out.coloured(name_of(status.state), colour_of(status.state)));
    field("token", std::to_string(status.token.value));
    if (status.lease) {
        const Lease& lease = *status.lease;
        field("lock_id", lease.lock_id.text());
        field("holder", printable(lease.holder.display()));
        field("user", printable(lease.holder.user));
        field("operation", printable(lease.operation));
        field("reason", printable(lease.reason));
        field("acquired", to_rfc3339(lease.acquired_at));
        if (lease.renew_seq > 0)
            field("renewed", fmt::format("{} ({} times)", to_rfc3339(lease.renewed_at), lease.renew_seq));
        field("expires", fmt::format("{} ({})", to_rfc3339(lease.expires_at), expiry(lease, status.as_of)));
        if (lease.max_until) field("max_until", to_rfc3339(*lease.max_until));
        for (const auto& [key, value] : lease.meta) field("meta", printable(key) + "=" + printable(value));
    }
    field("waiters", std::to_string(status.waiters));
    if (usual) {
        const bool must_wait = status.state == LockState::held || status.waiters > 0;
        field("usual", usual_words(status, *usual, must_wait ? std::optional(status.waiters) : std::nullopt));
    }
    if (const auto& ask = status.override_request)
        field("override", fmt::format("{} asks for it{}{}", who(ask->asker), ask->reason.empty() ? "" : ": ",
                                      printable(ask->reason)));
    if (store.may_be_stale) field("stale", stale_words);
    field("store", fmt::format("{} (grade {})", printable(store.url), name_of(store.grade)));
}

void note_stale(const Output& out, const std::optional<StoreInfo>& store) {
    if (store && store->may_be_stale) out.note(stale_words);
}

bool ran_out_long_ago(const LockStatus& status) {
    return status.state == LockState::expired && status.lease->expires_at + std::chrono::hours{24} < status.as_of;
}

void show_locks(Output& out, const std::vector<LockStatus>& locks) {
    std::vector<Row> rows;
    for (const LockStatus& status : locks) {
        Row row{{printable(status.name.text()), std::string(name_of(status.state))}, colour_of(status.state)};
        if (const auto& lease = status.lease)
            row.cells.insert(row.cells.end(), {expiry(*lease, status.as_of), who(lease->holder),
                                               printable(lease->operation), printable(lease->reason)});
        else
            row.cells.resize(6);
        row.cells.push_back(std::to_string(status.waiters));
        row.cells.push_back(std::to_string(status.token.value));
        rows.push_back(std::move(row));
    }
    if (rows.empty()) return out.note("no lock is held");
    out.table({"NAME", "STATE", "EXPIRES", "HOLDER", "OPERATION", "REASON", "WAITERS", "TOKEN"}, rows);
}

std::string line_of(const AuditEvent& event) {
    return line_with(event, std::to_string(event.seq), std::string(name_of(event.kind)));
}

std::vector<std::string> lines_of(const std::vector<AuditEvent>& events) {
    std::vector<std::string> lines;
    for (const AuditEvent& event : events) lines.push_back(line_of(event));
    return lines;
}

std::vector<std::string> folded_lines(const std::vector<AuditEvent>& events) {
    struct Run {
        const AuditEvent* first;
        const AuditEvent* last;
        std::size_t count = 1;
    };
    std::vector<Run> runs;
    std::map<LockName, std::size_t> newest;  // Of each lock: events of others may stand between its own.
    for (const AuditEvent& event : events) {
        const auto found = newest.find(event.name);
        Run* const open = found == newest.end() ? nullptr : &runs[found->second];
        const bool goes_on = open != nullptr && event.kind == EventKind::renewed &&
                             open->last->kind == EventKind::renewed && open->last->lock_id == event.lock_id;
        if (goes_on) {
            open->last = &event;
            ++open->count;
        } else {
            newest[event.name] = runs.size();
            runs.push_back({&event, &event});
        }
    }
    std::vector<std::string> lines;
    for (const Run& run : runs)
        lines.push_back(run.count == 1 ? line_of(*run.first)
                                       : line_with(*run.first, fmt::format("{}-{}", run.first->seq, run.last->seq),
                                                   fmt::format("renewed {} times, last at {}", run.count,
                                                               to_rfc3339(run.last->at))));
    return lines;
}

}  // namespace holdfast::cli
