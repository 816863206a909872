#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/prompt.hpp"
#include "cli/show.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr Option expect{"expect", '\0', Takes::one,       "LOCK_ID", "Break this lease and no other.",
                        "",       "",   From::environment};
constexpr std::array words{Word{"NAME"}};
constexpr std::array options{opt::yes, opt::reason, expect, opt::holder};

Error not_held(const LockStatus& status) {
    Error error{Errc::lock_not_held, printable(status.name.text()) + " is not held by anybody"};
    error.holder = std::make_shared<const LockStatus>(status);
    return error;
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
    if (context.out.style().json) {
        context.out.document(json::Object().set("released", json::lock(*status, *context.info()).done()).done());
    } else if (!context.out.style().quiet) {
        context.out.line(fmt::format("{} was taken away from {}; it is free now", printable(name->text()),
                                     who(status->lease->holder)));
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
    "audit log names who did it and why. The token rises, so that what the old holder still writes can be refused.\n\n"
    "Example: holdfast unlock deploy/prod --reason \"runner is gone\"",
    words,
    options,
    run};

}  // namespace holdfast::cli
