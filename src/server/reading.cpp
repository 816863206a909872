// The endpoints that only read.
#include "json/event.hpp"
#include "json/lock.hpp"
#include "json/store.hpp"
#include "server/handlers.hpp"
#include "server/query.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::server {
namespace {

constexpr std::uint64_t usual_page = 1'000;
constexpr std::uint64_t longest_page = 10'000;

HttpReply ok(const json::Object& document) {
    HttpReply reply;
    reply.body = document.done().written();
    return reply;
}

Result<ListQuery> list_query(const HttpRequest& request) {
    ListQuery query{.prefix = std::string(request.parameter("prefix").value_or("")),
                    .after = std::string(request.parameter("after").value_or(""))};
    const auto with_free = switch_in(request, "all");
    if (!with_free) return std::unexpected(with_free.error());
    const auto unreadable = switch_in(request, "unreadable");
    if (!unreadable) return std::unexpected(unreadable.error());
    const auto since = time_in(request, "changed_since");
    if (!since) return std::unexpected(since.error());
    const auto limit = number_in(request, "limit", usual_page, longest_page);
    if (!limit) return std::unexpected(limit.error());
    query.with_free = *with_free;
    query.with_unreadable = *unreadable;
    query.changed_since = *since;
    query.limit = static_cast<std::size_t>(*limit);
    return query;
}

/// The first so many locks that `who` may read. The bool: whether there are more.
Result<std::pair<std::vector<LockStatus>, bool>> visible_locks(Store& store, const Identity& who, ListQuery query,
                                                               Deadline deadline) {
    const std::size_t wanted = *query.limit;
    std::vector<LockStatus> found;
    while (true) {
        query.limit = wanted + 1;
        auto page = store.list(query, deadline);
        if (!page) return std::unexpected(page.error());
        const bool is_last = page->size() <= wanted;
        if (!page->empty()) query.after = page->back().name.text();
        for (LockStatus& lock : *page)
            if (who.role_for(lock.name) >= Role::viewer) found.push_back(std::move(lock));
        if (found.size() <= wanted && !is_last) continue;
        const bool has_more = found.size() > wanted;
        if (has_more) found.erase(found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end());
        return std::pair{std::move(found), has_more};
    }
}

void answer_locks(Services& services, const ExchangePtr& exchange, ListQuery query, bool only_overrides) {
    answer_with(services, exchange,
                [who = exchange->who, query = std::move(query), only_overrides](
                    Store& store, Deadline deadline) -> Result<HttpReply> {
                    auto locks = visible_locks(store, who, query, deadline);
                    if (!locks) return std::unexpected(locks.error());
                    auto& [found, has_more] = *locks;
                    if (only_overrides)
                        std::erase_if(found, [](const LockStatus& lock) { return !lock.override_request; });
                    json::Object document =
                        only_overrides ? json::overrides(found, store.info()) : json::locks(found, store.info());
                    return ok(document.set("more", json::Value::boolean(has_more)));
                });
}

Result<HistoryQuery> history_query(const Exchange& exchange) {
    const HttpRequest& request = exchange.request;
    HistoryQuery query;
    if (request.parameter("name")) {
        auto name = name_in(exchange);
        if (!name) return std::unexpected(name.error());
        query.name = std::move(*name);
    }
    const auto since = time_in(request, "since");
    if (!since) return std::unexpected(since.error());
    const auto after = number_in(request, "after_seq", 0, FencingToken::limit);
    if (!after) return std::unexpected(after.error());
    const auto limit = number_in(request, "limit", usual_page, longest_page);
    if (!limit) return std::unexpected(limit.error());
    const std::string_view which = request.parameter("which").value_or("newest");
    if (which != "newest" && which != "oldest") return fail(Errc::usage, "which is newest or oldest");
    query.since = *since;
    query.after_seq = *after;
    query.limit = static_cast<std::size_t>(*limit);
    query.which = which == "oldest" ? HistoryQuery::Which::oldest : HistoryQuery::Which::newest;
    return query;
}

/// What a gate asks: by the query, or by headers that a proxy sets.
Result<Check> gate_query(const Exchange& exchange) {
    const HttpRequest& request = exchange.request;
    const auto either = [&](std::string_view parameter, std::string_view header) {
        const auto text = request.parameter(parameter);
        return text ? text : request.header(header);
    };
    const auto name_text = either("name", "holdfast-lock");
    const auto token_text = either("token", "holdfast-token");
    if (!name_text || !token_text) return fail(Errc::usage, "name and token are needed");
    auto name = LockName::parse(*name_text);
    if (!name) return std::unexpected(name.error());
    const auto token = parse_number("token", *token_text, FencingToken::limit - 1);
    if (!token) return std::unexpected(token.error());
    Check check{.name = std::move(*name), .token = {*token}};
    if (auto allowed = permit(exchange.who, check); !allowed) return std::unexpected(allowed.error());
    return check;
}

/// nginx knows only 2xx, 401 and 403.
HttpReply denial(const HttpRequest& request, const Error& error) {
    const bool as_forbidden = request.parameter("deny").value_or("") == "403";
    const bool is_stale = error.code == Errc::fencing_mismatch || error.code == Errc::lock_expired ||
                          error.code == Errc::lock_not_held || error.code == Errc::lock_conflict;
    if (as_forbidden) return reply_with(error, 403);
    return is_stale ? reply_with(error, 412) : reply_with(error);
}

}  // namespace

void handle_lock(Services& services, const ExchangePtr& exchange) {
    auto name = name_in(*exchange);
    if (!name) return exchange->reply(reply_with(name.error()));
    answer_with(services, exchange, [name = std::move(*name)](Store& store, Deadline deadline) -> Result<HttpReply> {
        const auto lock = store.inspect(name, deadline);
        if (!lock) return std::unexpected(lock.error());
        return ok(json::lock(*lock, store.info()));
    });
}

void handle_locks(Services& services, const ExchangePtr& exchange) {
    auto query = list_query(exchange->request);
    if (!query) return exchange->reply(reply_with(query.error()));
    answer_locks(services, exchange, std::move(*query), false);
}

void handle_overrides(Services& services, const ExchangePtr& exchange) {
    answer_locks(services, exchange, {.limit = longest_page}, true);
}

void handle_history(Services& services, const ExchangePtr& exchange) {
    auto query = history_query(*exchange);
    if (!query) return exchange->reply(reply_with(query.error()));
    answer_with(
        services, exchange,
        [who = exchange->who, query = std::move(*query)](Store& store, Deadline deadline) -> Result<HttpReply> {
            HistoryQuery one_more = query;
            ++*one_more.limit;
            auto events = store.history(one_more, deadline);
            if (!events) return std::unexpected(events.error());
            const bool has_more = events->size() > *query.limit;
            if (has_more)
                events->erase(query.which == HistoryQuery::Which::oldest ? std::prev(events->end()) : events->begin());
            const json::Value until = events->empty() ? json::Value() : json::Value::time(events->back().at);
            std::erase_if(*events, [&](const AuditEvent& event) { return who.role_for(event.name) < Role::viewer; });
            return ok(json::events(*events).set("more", json::Value::boolean(has_more)).set("read_until", until));
        });
}

void handle_gate(Services& services, const ExchangePtr& exchange) {
    auto check = gate_query(*exchange);
    if (!check) return exchange->reply(denial(exchange->request, check.error()));
    const bool taken = services.batcher.submit(
        {std::move(*check)}, Deadline::in(services.clock, services.options.patience),
        [exchange](const Applied& applied) {
            const Reply reply = applied.replies ? applied.replies->front() : std::unexpected(applied.replies.error());
            exchange->reply(reply ? HttpReply{.status = 204, .content_type = ""}
                                  : denial(exchange->request, reply.error()));
        });
    if (!taken)
        exchange->reply(denial(exchange->request, {Errc::store_unavailable, "too many requests wait for the store"}));
}

void handle_store(Services& services, const ExchangePtr& exchange) {
    const auto examine = switch_in(exchange->request, "examine");
    if (!examine) return exchange->reply(reply_with(examine.error()));
    if (*examine && !access::may(exchange->who, Endpoint::examine))
        return exchange->reply(reply_with(access::denied(exchange->who, Endpoint::examine)));
    answer_with(
        services, exchange,
        [examine = *examine, version = services.options.version](Store& store, Deadline deadline) -> Result<HttpReply> {
            const auto findings = examine ? store.examine(deadline) : std::vector<Finding>{};
            const StoreInfo info = store.info();
            return ok(json::examination(info, store.properties(), findings)
                          .set("may_be_stale", json::Value::boolean(info.may_be_stale))
                          .set("was_used", json::Value::boolean(info.was_used))
                          .set("version", json::Value::text(version)));
        });
}

void handle_health(Services& /*services*/, const ExchangePtr& exchange) {
    HttpReply reply;
    reply.body = R"({"alive":true})";
    exchange->reply(std::move(reply));
}

void handle_ready(Services& services, const ExchangePtr& exchange) {
    if (services.is_stopping) return exchange->reply(reply_with({Errc::store_unavailable, "the daemon is stopping"}));
    // What is wrong with it, `holdfast token list` says: this is for everybody.
    if (services.authorizer.door().problem())
        return exchange->reply(reply_with({Errc::store_unavailable, "the token file cannot be used"}));
    answer_with(services, exchange, [](Store& store, Deadline deadline) -> Result<HttpReply> {
        const auto seen = store.list({.limit = 1}, deadline);
        if (!seen) return std::unexpected(Error{Errc::store_unavailable, seen.error().message});
        return ok(json::Object()
                      .set("ready", json::Value::boolean(true))
                      .set("grade", json::Value::text(name_of(store.info().grade))));
    });
}

}  // namespace holdfast::server
