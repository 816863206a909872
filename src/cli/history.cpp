#include "cli/command.hpp"
#include "cli/follow.hpp"
#include "json/documents.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr Option since{"since", '\0', Takes::one,       "D", "Only events of the last so long, such as 2h.",
                       "",      "",   From::environment};
constexpr Option limit{"limit", '\0', Takes::one, "N", "Only the newest so many events.", "", "", From::environment};
constexpr Option follow_on{"follow", 'f', Takes::nothing,   "", "Go on with new events as they come.",
                           "",       "",  From::environment};
constexpr Option verify{"verify", '\0', Takes::nothing,   "", "Check that no event was changed, removed or added.",
                        "",       "",   From::environment};
constexpr std::array history_options{since, limit, follow_on, verify};
constexpr std::array history_words{Word{"NAME", Word::Need::optional}};
constexpr std::array watch_words{Word{"PATTERN", Word::Need::optional}};

/// The chain of one lock, and how many events it has.
///
/// The log is read before the lock, so an event that comes in between is missing from it; then both
/// are read again. A lock that is never quiet for that long is looked at only so often.
Result<std::size_t> verify_lock(Store& store, const LockName& name, Deadline deadline) {
    Result<void> chain;
    for (int attempt = 0; attempt < 20; ++attempt) {
        const auto events = store.history({.name = name}, deadline);
        if (!events) return std::unexpected(events.error());
        const auto status = store.inspect(name, deadline);
        if (!status) return std::unexpected(status.error());
        chain = verify_chain(*events, *status);
        if (chain) return events->size();
        const auto again = store.inspect(name, deadline);
        if (!again) return std::unexpected(again.error());
        const std::uint64_t read = events->empty() ? 0 : events->back().seq;
        if (again->seq == status->seq && status->seq == read) break;
    }
    return std::unexpected(chain.error());
}

Result<int> run_verify(Context& context, const std::optional<LockName>& name) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    std::vector<LockName> names;
    if (name) {
        names.push_back(*name);
    } else {
        const auto locks = (*store)->list({.with_free = true}, context.soon());
        if (!locks) return std::unexpected(locks.error());
        for (const LockStatus& lock : *locks) names.push_back(lock.name);
    }
    std::size_t events = 0;
    for (const LockName& each : names) {
        const auto verified = verify_lock(**store, each, context.soon());
        if (!verified) return std::unexpected(verified.error());
        events += *verified;
    }
    if (context.out.style().json) {
        context.out.document(json::Object()
                                 .set("verified", json::Value::number(std::uint64_t{events}))
                                 .set("locks", json::Value::number(std::uint64_t{names.size()}))
                                 .done());
    } else {
        context.out.line(fmt::format("{} events of {} locks are intact", events, names.size()));
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

Result<int> run_history(Context& context) {
    std::optional<LockName> name;
    if (!context.line.words.empty()) {
        auto parsed = context.name();
        if (!parsed) return std::unexpected(parsed.error());
        name = std::move(*parsed);
    }
    const auto query = query_of(context, name);
    if (!query) return std::unexpected(query.error());
    if (context.settings.on(verify)) return run_verify(context, name);

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
        for (const AuditEvent& event : *events) print_event(context.out, event);
        return 0;
    }
    std::vector<json::Value> items;
    for (const AuditEvent& event : *events) items.push_back(json::event(event).done());
    context.out.document(json::Object().set("events", json::Value::array(items)).done());
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

constinit const Command history_command{"history",
                                        "",
                                        "Show the audit log, or verify it",
                                        "Shows who took what from whom: one line for each change of a lock, oldest "
                                        "first. With --verify, checks the chain of "
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
