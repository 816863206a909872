// Asking a holder to hand its lock over, and answering.
#include "cli/command.hpp"
#include "cli/grant.hpp"
#include "cli/report.hpp"
#include "cli/show.hpp"
#include "cli/signals.hpp"
#include "json/lock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::array one_name{Word{"NAME"}};
constexpr std::array request_options{opt::reason, opt::ttl,  opt::wait,  opt::no_wait,
                                     opt::holder, opt::user, opt::format};
constexpr std::array answer_options{opt::reason, opt::lease, opt::holder};

/// How long a question is valid when nobody waits for the answer.
constexpr std::chrono::hours standing{1};

/// The outcome of a question.
enum class Answered { not_yet, approved, gone };

Answered answer_to(const Ask& ask, const LockStatus& status) {
    if (status.lease && status.lease->lock_id == ask.as.lock_id) return Answered::approved;
    if (status.override_request && status.override_request->lock_id == ask.as.lock_id) return Answered::not_yet;
    return Answered::gone;
}

/// A question that is gone was denied, which an event shows, or its lease has ended.
Result<std::optional<AuditEvent>> denial_of(Store& store, const Ask& ask, Deadline deadline) {
    const auto events = store.history({.name = ask.name}, deadline);
    if (!events) return std::unexpected(events.error());
    for (const AuditEvent& event : *events)
        if (event.kind == EventKind::override_denied && event.lock_id == ask.as.lock_id) return event;
    return std::nullopt;
}

Error denied(const Ask& ask, const AuditEvent& denial, const LockStatus& status) {
    Error error{Errc::denied,
                fmt::format("{} denied the request for {}{}{}", printable(Holder{denial.actor, ""}.display()),
                            printable(ask.name.text()), denial.reason.empty() ? "" : ": ", printable(denial.reason))};
    error.hint = status.lease ? who(status.lease->holder) + " goes on; talk to them, or ask again later"
                              : "talk to them, or ask again later";
    error.holder = std::make_shared<const LockStatus>(status);
    return error;
}

/// The asker stops waiting, so the question is withdrawn: an approval would give the lock to nobody.
Result<void> withdraw(Context& context, const Ask& ask) {
    const Answer no{
        .name = ask.name, .ask_id = ask.as.lock_id, .actor = ask.holder.text, .reason = "withdrawn by the asker"};
    const auto withdrawn = context.apply(no);
    if (withdrawn) return {};
    if (withdrawn.error().code != Errc::lock_not_held) return std::unexpected(withdrawn.error());
    // Too late to withdraw: if it was approved, the lock is given back.
    const auto cancelled = context.apply(Cancel{ask.name, ask.as});
    if (!cancelled) return std::unexpected(cancelled.error());
    return {};
}

Result<int> take_over(Context& context, const Ask& ask, const client::Terms& terms) {
    // The lease that was asked for has ended without an answer, so this is an ordinary grant.
    Acquire request{.name = ask.name, .as = ask.as, .ttl = ask.ttl};
    request.holder = ask.holder;
    request.reason = ask.reason;
    request.max_hold = terms.max_hold;
    request.unless_held = terms.unless_held;
    const auto granted = context.apply(request);
    if (!granted) return std::unexpected(granted.error());
    return hand_over(context, *granted, ask.as);
}

Result<int> wait_for_answer(Context& context, const Ask& ask, const client::Terms& terms, Deadline deadline,
                            const StopOnSignal& signals) {
    Store& store = **context.store();
    while (true) {
        const auto status = context.inspect(ask.name);
        if (!status) return std::unexpected(status.error());
        const Answered answered = answer_to(ask, *status);
        if (answered == Answered::gone) {
            const auto denial = denial_of(store, ask, context.soon());
            if (!denial) return std::unexpected(denial.error());
            if (*denial) return std::unexpected(denied(ask, **denial, *status));
            if (!deadline.passed(context.clock)) return take_over(context, ask, terms);
        }
        if (signals.signal() == 0 && answered == Answered::approved)
            return hand_over(context, {*status, std::nullopt}, ask.as);
        if (signals.signal() != 0 || deadline.passed(context.clock)) {
            if (auto withdrawn = withdraw(context, ask); !withdrawn) return std::unexpected(withdrawn.error());
            Error error{Errc::lock_conflict, "nobody answered the request for " + printable(ask.name.text())};
            error.holder = std::make_shared<const LockStatus>(*status);
            if (signals.signal() == 0) return std::unexpected(std::move(error));
            report(error, context.out, context.info(), &context.settings);
            return signals.exit_status();
        }
        signals.sleep(std::min(milliseconds{200}, deadline.remaining(context.clock)));
    }
}

Result<int> run_request(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto terms = context.settings.terms_for_ttl(*name);
    if (!terms) return std::unexpected(terms.error());
    const auto wait = context.settings.wait();
    if (!wait) return std::unexpected(wait.error());
    const bool waits = *wait > milliseconds{0};
    const auto valid_for = Ttl::of(waits ? std::clamp(*wait, Ttl::shortest, Ttl::longest) : standing);
    const Deadline deadline = Deadline::in(context.clock, *wait);

    Ask ask{.name = *name, .as = Credentials::random(), .ttl = terms->ttl, .valid_for = *valid_for};
    ask.holder = context.holder();
    ask.reason = context.settings.text(opt::reason);
    // Before the question is sent, so that a signal in between cannot leave it unanswered in the store.
    std::optional<StopOnSignal> signals;
    if (waits) signals.emplace();
    auto asked = context.apply(ask);
    if (!asked && asked.error().code == Errc::denied)
        asked.error().hint = "see who asks: holdfast override list" + repeated_flags(context.settings);
    if (!asked) return std::unexpected(asked.error());
    if (!waits) {
        context.out.note(fmt::format("asked {}; the lease is yours once the answer is yes, within {}",
                                     who(asked->lock.lease->holder), to_words(valid_for->time())));
        return hand_over(context, *asked, ask.as);
    }
    context.out.note(fmt::format("asked {}, waiting for the answer", who(asked->lock.lease->holder)));
    return wait_for_answer(context, ask, *terms, deadline, *signals);
}

/// The lease that answers: --lease, or HOLDFAST_LEASE if that is the one which holds this lock. An
/// operator answers without one.
Result<std::optional<Credentials>> answering(const Context& context, const LockStatus& status) {
    if (!context.settings.given(opt::lease)) return std::nullopt;
    const auto as = context.settings.lease();
    if (!as) return std::unexpected(as.error());
    const bool holds = status.lease && status.lease->lock_id == as->lock_id;
    if (!holds && !context.settings.on_command_line(opt::lease)) return std::nullopt;
    return *as;
}

Result<int> run_answer(Context& context, Verdict verdict) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    // The policy binds the asker, too.
    const auto terms = context.settings.terms_for(*name, {});
    if (!terms) return std::unexpected(terms.error());
    const auto status = context.inspect(*name);
    if (!status) return std::unexpected(status.error());
    const auto by = answering(context, *status);
    if (!by) return std::unexpected(by.error());
    const auto& pending = status->override_request;
    if (!pending) {
        Error error{Errc::lock_not_held, "nobody asks for " + printable(name->text())};
        error.holder = std::make_shared<const LockStatus>(*status);
        return std::unexpected(std::move(error));
    }
    context.out.note(fmt::format("{} asks for {}{}{}", who(pending->asker), printable(name->text()),
                                 pending->reason.empty() ? "" : ": ", printable(pending->reason)));
    const Answer answer{.name = *name,
                        .ask_id = pending->lock_id,
                        .verdict = verdict,
                        .actor = context.holder().text,
                        .reason = context.settings.text(opt::reason),
                        .by = *by,
                        .longest_ttl = terms->longest_ttl,
                        .max_hold = terms->max_hold};
    const auto answered = context.apply(answer);
    if (!answered) return std::unexpected(answered.error());
    if (context.out.style().json) {
        context.out.document(json::lock(answered->lock, *context.info()).done());
    } else if (!context.out.style().quiet) {
        context.out.line(sentence(answered->lock));
    }
    return 0;
}

Result<int> run_approve(Context& context) { return run_answer(context, Verdict::approve); }
Result<int> run_deny(Context& context) { return run_answer(context, Verdict::deny); }

Result<int> run_list(Context& context) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    auto locks = (*store)->list({}, context.soon());
    if (!locks) return std::unexpected(locks.error());
    std::erase_if(*locks, [](const LockStatus& lock) { return !lock.override_request; });
    if (context.out.style().json) {
        context.out.document(json::overrides(*locks, *context.info()).done());
        return 0;
    }
    std::vector<Row> rows;
    for (const LockStatus& lock : *locks) {
        const Override& ask = *lock.override_request;
        rows.push_back(
            {{printable(lock.name.text()), who(ask.asker), printable(ask.reason), to_rfc3339(ask.asked_at)}});
    }
    if (rows.empty()) {
        context.out.note("nobody asks for a lock");
    } else {
        context.out.table({"NAME", "ASKED BY", "REASON", "SINCE"}, rows);
    }
    return 0;
}

}  // namespace

constinit const Command override_request_command{"override request",
                                                 "",
                                                 "Ask the holder to hand a lock over",
                                                 "Asks for the lock NAME and prints the lease that becomes valid when "
                                                 "the answer is yes. With --wait, prints it only "
                                                 "then; a refusal ends with status 77, no answer in time with 75.",
                                                 one_name,
                                                 request_options,
                                                 run_request};

constinit const Command override_approve_command{"override approve",
                                                 "",
                                                 "Hand the lock to whoever asks for it",
                                                 "Moves the lock to the asker in one step, with a new token. Answers "
                                                 "for the holder with its lease, otherwise as an operator.",
                                                 one_name,
                                                 answer_options,
                                                 run_approve};

constinit const Command override_deny_command{
    "override deny", "",      "Refuse to hand the lock over", "Removes the question. The holder goes on.", one_name,
    answer_options,  run_deny};

constinit const Command override_list_command{
    "override list", "", "Show who asks for which lock", "A line for each lock that somebody asks for.", {}, {},
    run_list};

}  // namespace holdfast::cli
