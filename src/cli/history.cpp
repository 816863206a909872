#include "cli/command.hpp"
#include "cli/follow.hpp"
#include "cli/show.hpp"
#include "client/verify.hpp"
#include "json/event.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr Option since{
    {"since", Takes::one, "", "", From::environment}, '\0', "D", "Only events of the last so long, such as 2h."};
constexpr Option limit{{"limit", Takes::one, "", "", From::environment}, '\0', "N", "Only the newest so many events."};
constexpr Option follow_on{
    {"follow", Takes::nothing, "", "", From::environment}, 'f', "", "Go on with new events as they come."};
constexpr Option verify{{"verify", Takes::nothing, "", "", From::environment},
                        '\0',
                        "",
                        "Check that no event was changed, removed or added."};
constexpr Option all{{"all", Takes::nothing, "", "", From::environment}, '\0', "", "A line for every renewal, too."};
constexpr std::array history_options{since, limit, all, follow_on, verify};
constexpr std::array history_words{Word{"NAME", Word::Need::optional}};
constexpr std::array watch_words{Word{"PATTERN", Word::Need::optional}};

Result<int> run_verify(Context& context, const std::optional<LockName>& name) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const auto verified = client::verify(**store, name, context.clock);
    if (!verified) return std::unexpected(verified.error());
    if (context.out.style().json) {
        context.out.document(json::verified(verified->events, verified->locks).done());
    } else {
        // A name that is misspelt would otherwise seem to be in order.
        const bool is_unknown = name && verified->locks == 0;
        context.out.line(fmt::format("{}{} events of {} locks are intact",
                                     is_unknown ? printable(name->text()) + " was never used: " : "", verified->events,
                                     verified->locks));
    }
    return 0;
}

Result<HistoryQuery> query_of(const Context& context, const std::optional<LockName>& name) {
    HistoryQuery query{.name = name};
    if (context.settings.given(since)) {
        const auto time = context.settings.duration(since);
        if (!time) return std::unexpected(time.error());
        query.since = context.clock.wall() - *time;
    }
    if (context.settings.given(limit)) {
        const auto most = context.settings.number(limit, 1'000'000'000);
        if (!most) return std::unexpected(most.error());
        query.limit = static_cast<std::size_t>(*most);
    }
    return query;
}

void say_nothing_happened(const Context& context, const std::optional<LockName>& name) {
    std::string text = name ? "no events of " + printable(name->text()) : "no events";
    if (const auto time = context.settings.duration(since); context.settings.given(since) && time)
        text += " in the last " + to_words(*time);
    context.out.note(text);
}

Result<int> run_history(Context& context) {
    std::optional<LockName> name;
    if (!context.line.words.empty()) {
        auto parsed = context.name();
        if (!parsed) return std::unexpected(parsed.error());
        name = std::move(*parsed);
    }
    const auto query = query_of(context, name);
    if (!query) return std::unexpected(query.error());
    if (context.settings.on(verify)) {
        // A check of less than everything would pass where the rest was changed.
        for (const Option* other : {&since, &limit, &follow_on, &all})
            if (context.settings.on_command_line(*other))
                return fail(Errc::usage,
                            fmt::format("--verify checks every event, so --{} does not go with it", other->name));
        return run_verify(context, name);
    }

    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    Follower follower(name, "");
    const bool go_on = context.settings.on(follow_on);
    // Before the log is read: what comes in between is then in the log, or is followed.
    if (go_on)
        if (auto started = follower.start(**store, context.soon()); !started) return std::unexpected(started.error());
    const auto events = (*store)->history(*query, context.soon());
    if (!events) return std::unexpected(events.error());
    if (go_on) {
        for (const AuditEvent& event : *events) follower.seen(event);
        return follow(context, follower, *events);
    }
    if (!context.out.style().json) {
        if (events->empty()) say_nothing_happened(context, name);
        for (const std::string& text : context.settings.on(all) ? lines_of(*events) : folded_lines(*events))
            context.out.line(text);
        note_stale(context.out, context.info());
        return 0;
    }
    json::Object document = json::events(*events);
    if (context.info()->may_be_stale) document.set("may_be_stale", json::Value::boolean(true));
    context.out.document(document.done());
    return 0;
}

Result<int> run_watch(Context& context) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    Follower follower(std::nullopt, context.line.words.empty() ? "" : context.line.words.front());
    if (auto started = follower.start(**store, context.soon()); !started) return std::unexpected(started.error());
    return follow(context, follower, {});
}

}  // namespace

constinit const Command history_command{
    "history",
    "",
    "Show the audit log, or verify it",
    "Shows who took what from whom: one line for each change of a lock, oldest "
    "first; the renewals of a lease share one, unless --all. With --verify, checks the chain of "
    "hashes instead, and fails with status 84 where it is broken. With --follow "
    "and --json, one JSON document on each line.",
    history_words,
    history_options,
    run_history};

constinit const Command watch_command{
    "watch",
    "",
    "Show events as they happen, one on each line",
    "Follows every lock, or those whose name matches PATTERN, in which * and ? stand for any letters: \"deploy/*\". "
    "With --json, one JSON document on each line. Ends with Ctrl-C.",
    watch_words,
    {},
    run_watch};

}  // namespace holdfast::cli
