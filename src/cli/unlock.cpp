#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/prompt.hpp"
#include "cli/show.hpp"
#include "json/lock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace holdfast::cli {
namespace {

constexpr Option expect{
    {"expect", Takes::one, "", "", From::environment}, '\0', "LOCK_ID", "Break this lease and no other."};
constexpr std::array words{Word{"NAME"}};
constexpr std::array options{opt::yes, opt::reason, expect, opt::holder};

Error not_held(const LockStatus& status) {
    Error error{Errc::lock_not_held, printable(status.name.text()) + " is not held by anybody"};
    error.holder = std::make_shared<const LockStatus>(status);
    return error;
}

/// Until when a holder that has not been told can trust its lease, by the store's clock: by then its command has ended.
/// Absent if the lease had run out.
std::optional<Instant> trusted_until(const LockStatus& before, const LockStatus& after) {
    const Lease& lease = *before.lease;
    if (before.state != LockState::held) return std::nullopt;
    // It may have been renewed while the question was answered; its events are counted.
    const bool is_unchanged = after.seq == before.seq + 1;
    const Instant until = is_unchanged ? lease.expires_at : std::max(lease.expires_at, after.as_of + lease.ttl);
    return lease.max_until ? std::min(until, *lease.max_until) : until;
}

/// The writers of a worktree are kept apart by nothing but its lock, so by default only a lease that has run out is
/// taken away from them.
bool is_of_a_worktree(const LockName& name, const Store& store) {
    return name.text().starts_with("worktree/") && store.info().url.find("/.holdfast/locks") != std::string::npos;
}

/// What a policy forbids.
std::optional<Error> forbidden(Context& context, const LockStatus& status) {
    if (status.state != LockState::held) return std::nullopt;
    const auto store = context.store();
    const auto said = context.settings.may_unlock(status.name);
    if (said.value_or(!store || !is_of_a_worktree(status.name, **store))) return std::nullopt;
    Error error{Errc::denied,
                fmt::format("{}, and its lease lives: unlock ends only leases that have run out, unless a "
                            "policy with may_unlock = true matches the name",
                            sentence(status))};
    error.hint = "wait for its end: holdfast acquire --wait, or holdfast worktree run --wait";
    error.holder = std::make_shared<const LockStatus>(status);
    return error;
}

void tell(Output& out, const LockStatus& before, const std::optional<Instant>& until) {
    out.line(fmt::format("{} was taken away from {}; it is free now", printable(before.name.text()),
                         who(before.lease->holder)));
    if (until)
        out.line(
            fmt::format("its command may still run until {}; holdfast run ends it as soon as it hears of this, mostly "
                        "within a second",
                        clock_time(*until, before.as_of)));
}

Result<int> run(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    std::optional<LockId> expected;
    if (context.settings.given(expect)) {
        const auto lock_id = LockId::parse(context.settings.text(expect));
        if (!lock_id) return fail(Errc::usage, "--expect: a lock_id is a UUID, as status shows it");
        expected = *lock_id;
    }
    const auto status = context.inspect(*name);
    if (!status) return std::unexpected(status.error());
    if (!status->lease) return std::unexpected(not_held(*status));

    if (auto error = forbidden(context, *status)) return std::unexpected(*std::move(error));
    Output::warn(sentence(*status));
    const auto sure = confirm(context, "Take it away from them?");
    if (!sure) {
        Error error = sure.error();
        error.holder = std::make_shared<const LockStatus>(*status);
        return std::unexpected(std::move(error));
    }
    if (!*sure) {
        Error error{Errc::denied, fmt::format("you did not agree, so {} stays with {}", printable(name->text()),
                                              who(status->lease->holder))};
        error.hint = "nothing was changed";
        error.holder = std::make_shared<const LockStatus>(*status);
        return std::unexpected(std::move(error));
    }

    // The lease that was shown, or the one that was named: never whatever is there by now.
    const Break request{*name, expected.value_or(status->lease->lock_id), context.holder().text,
                        context.settings.text(opt::reason)};
    const auto broken = context.apply(request);
    if (!broken) return std::unexpected(broken.error());
    const auto until = trusted_until(*status, broken->lock);
    if (context.out.style().json) {
        context.out.document(json::broken(*status, until, *context.info()).done());
    } else if (!context.out.style().quiet) {
        tell(context.out, *status, until);
    }
    return 0;
}

}  // namespace

constinit const Command unlock_command{
    "unlock",
    "force-unlock break",
    "Take a lock away from its holder",
    "Shows who holds the lock, asks, and ends that lease; if somebody else holds the lock by then, nothing is changed. "
    "The "
    "audit log names who did it and why. The token rises, so that what the old holder still writes can be refused. "
    "Says until when its "
    "command may still run: holdfast run ends it as soon as it hears of the loss, and at the latest with the lease.\n\n"
    "Example: holdfast unlock deploy/prod --reason \"runner is gone\"",
    words,
    options,
    run};

}  // namespace holdfast::cli
