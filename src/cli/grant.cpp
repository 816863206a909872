#include "cli/grant.hpp"

#include "cli/report.hpp"
#include "cli/show.hpp"
#include "config/hints.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

/// What the commands that follow need if no store is named: the lease is to be found where they would look.
std::string where_it_is(const Context& context, const Credentials& as) {
    if (!context.settings.uses_default_store()) return "";
    return fmt::format(" {}={}", config::in_default_store, as.lock_id.text());
}

void print_for_eval(const Context& context, const Outcome& outcome, const Credentials& as) {
    context.out.line(fmt::format("export HOLDFAST_LEASE={} HOLDFAST_TOKEN={} HOLDFAST_LOCK={}{}",
                                 config::shell_quoted(as.reveal()), outcome.lock.token.value,
                                 config::shell_quoted(outcome.lock.name.text()), where_it_is(context, as)));
}

void print_for_people(const Context& context, const Outcome& outcome, const Credentials& as, Joined joined) {
    Output& out = context.out;
    const LockStatus& lock = outcome.lock;
    const std::string name = printable(config::name_and_flags(lock.name.text(), repeated_flags(context.settings)));
    // With --quiet the lease alone: LEASE=$(holdfast acquire -q NAME)
    if (out.style().quiet) return out.line(as.reveal());
    if (lock.lease && lock.lease->lock_id == as.lock_id) {
        out.line(fmt::format("{} is {} for {}, until {}, with token {}", printable(lock.name.text()),
                             joined == Joined::yes ? "yours already, and joined," : "yours",
                             to_words(lock.lease->expires_at - lock.as_of), to_rfc3339(lock.lease->expires_at),
                             lock.token.value));
    }
    if (outcome.stolen_from)
        out.line(fmt::format("it was taken over from {}, whose lease ran out at {}", who(outcome.stolen_from->holder),
                             to_rfc3339(outcome.stolen_from->expired_at)));
    out.line("");
    out.line("export HOLDFAST_LEASE=" + as.reveal() + where_it_is(context, as));
    out.line("");
    if (joined == Joined::yes)
        return out.line(
            fmt::format("After that line, keep it with \"holdfast renew{}\". The command that took it gives "
                        "it back.",
                        name));
    out.line(
        fmt::format("After that line, keep it with \"holdfast renew{}\" and give it back with \"holdfast release{}\".",
                    name, name));
}

}  // namespace

Result<int> hand_over(Context& context, const Outcome& outcome, const Credentials& as, Joined joined) {
    const std::string format = context.settings.text(opt::format);
    if (context.out.style().json) {
        context.out.document(json::grant(outcome, as, *context.info(), joined).done());
    } else if (format == "sh") {
        print_for_eval(context, outcome, as);
    } else {
        print_for_people(context, outcome, as, joined);
    }
    if (context.out.flush() == 0 || joined == Joined::yes) return 0;
    if (auto given_back = context.apply(Cancel{outcome.lock.name, as}); !given_back)
        return std::unexpected(given_back.error());
    return 0;
}

Result<Acquire> acquire_request(const Context& context, LockName name, const client::Terms& terms) {
    auto meta = context.settings.meta();
    if (!meta) return std::unexpected(meta.error());
    Acquire request{.name = std::move(name), .as = Credentials::random(), .ttl = terms.ttl};
    request.holder = context.holder();
    request.operation = context.settings.text(opt::operation);
    request.reason = context.settings.text(opt::reason);
    request.max_hold = terms.max_hold;
    request.unless_held = terms.unless_held;
    request.meta = std::move(*meta);
    return request;
}

}  // namespace holdfast::cli
