#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/prompt.hpp"
#include "cli/show.hpp"
#include "json/lock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr std::array words{Word{"NAME"}};
constexpr std::array options{opt::yes, opt::reason, opt::holder};

/// The number of the lock's newest event, as far as it can be read.
std::uint64_t newest_event(Context& context, const Result<LockStatus>& before, const LockName& name) {
    if (before) return before->seq;
    const auto store = context.store();
    if (!store) return 0;
    const auto events = (*store)->history({.name = name, .limit = 1}, context.soon());
    return events && !events->empty() ? events->back().seq : 0;
}

/// What was repaired, as its event tells. Absent if nothing was.
Result<std::optional<AuditEvent>> event_after(Context& context, const LockStatus& after, std::uint64_t before) {
    if (after.seq <= before) return std::nullopt;
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const auto events = (*store)->history({.name = after.name, .after_seq = after.seq - 1, .limit = 1}, context.soon());
    if (!events) return std::unexpected(events.error());
    if (events->empty() || events->back().kind != EventKind::repaired) return std::nullopt;
    return events->back();
}

std::string what_of(const AuditEvent& event) {
    const auto what = event.details.find("what");
    return what == event.details.end() ? "the lock" : what->second;
}

void tell(Context& context, const LockStatus& lock, const std::optional<AuditEvent>& event) {
    Output& out = context.out;
    const std::string name = printable(lock.name.text());
    if (!event) return out.line(name + " can be read; there was nothing to repair");
    out.line(fmt::format("{} is usable again, with token {}: {} could not be read", name, lock.token.value,
                         what_of(*event)));
    out.line(lock.lease ? "it is still held: " + sentence(lock) : "it is free; whoever held it hears of the loss");
    out.line(fmt::format("the bytes that could not be read are kept in event {} of its history", event->seq));
}

Result<int> run(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto before = context.inspect(*name);
    if (!before && before.error().code != Errc::record_corrupt) return std::unexpected(before.error());
    if (before)
        Output::warn(printable(name->text()) + " can be read; if its queue cannot, its waiters have to queue up again");
    else
        Output::warn(printable(before.error().message));
    const auto sure = confirm(context, fmt::format("Make {} usable again?", printable(name->text())));
    if (!sure) return std::unexpected(sure.error());
    if (!*sure) {
        Error error{Errc::denied, fmt::format("you did not agree, so {} stays as it is", printable(name->text()))};
        error.hint = "nothing was changed";
        return std::unexpected(std::move(error));
    }
    const std::uint64_t newest = newest_event(context, before, *name);
    const auto repaired = context.apply(Repair{*name, context.holder().text, context.settings.text(opt::reason)});
    if (!repaired) return std::unexpected(repaired.error());
    const auto event = event_after(context, repaired->lock, newest);
    if (!event) return std::unexpected(event.error());
    if (context.out.style().json) {
        const std::optional<std::string> what = *event ? std::optional(what_of(**event)) : std::nullopt;
        context.out.document(json::repaired(repaired->lock, *context.info(), what).done());
    } else if (!context.out.style().quiet) {
        tell(context, repaired->lock, *event);
    }
    return 0;
}

}  // namespace

constinit const Command repair_command{
    "repair",
    "",
    "Make a lock usable again whose record cannot be read",
    "A lock of which something cannot be read is blocked, because nobody knows whether it is held. First make sure "
    "that "
    "nobody works under it. Then this command asks, and replaces what cannot be read: the lock is free, with a token "
    "above everything that is still known of it. If only its queue cannot be read, the queue is emptied and the lease "
    "stays. What can be read is never changed. The audit log names who did it, and keeps the bytes.\n\n"
    "Example: holdfast repair deploy/prod --reason \"disk was full\"",
    words,
    options,
    run};

}  // namespace holdfast::cli
