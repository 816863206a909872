#include "server/router.hpp"

#include "server/handlers.hpp"
#include "server/origin.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace holdfast::server {
namespace {

constexpr Parameter name_parameter{"name", "The name of the lock.", true};
constexpr std::array lock_parameters{name_parameter};
constexpr std::array locks_parameters{
    Parameter{"prefix", "Only locks whose names begin so."},
    Parameter{"all", "1: also locks that nobody holds.", false, "integer"},
    Parameter{"after", "Only names after this one, in byte order: the next page."},
    Parameter{"limit", "So many locks. `more` tells whether others follow.", false, "integer"},
    Parameter{"changed_since", "Only locks with an event at or after this time."},
    Parameter{"unreadable", "1: locks that cannot be read are listed, too.", false, "integer"}};
constexpr std::array history_parameters{
    Parameter{"name", "One lock. Without it: all locks that the caller may read."},
    Parameter{"since", "Only events at or after this time."},
    Parameter{"after_seq", "With a name: only events with a higher seq.", false, "integer"},
    Parameter{"limit", "So many events.", false, "integer"},
    Parameter{"which", "Of a limited number: newest or oldest."}};
constexpr std::array events_parameters{
    Parameter{"since",
              "A cursor: events after it. `end`: from now on. Without it, from the oldest event that is kept."},
    Parameter{"prefix", "Only events of locks whose names begin so."},
    Parameter{"limit", "Of a page: about so many events.", false, "integer"}};
constexpr std::array gate_parameters{
    Parameter{"name", "The name of the lock; also the header Holdfast-Lock."},
    Parameter{"token", "The fencing token; also the header Holdfast-Token.", false, "integer"},
    Parameter{"deny", "403: answer every refusal with this status."}};
constexpr std::array store_parameters{Parameter{"examine", "1: what doctor finds.", false, "integer"}};

/// The only list.
constexpr std::array all_routes{
    Route{"POST", "/v1/acquire", Role::holder, handle_request, "Take a lock", "Acquire", "Grant"},
    Route{"POST", "/v1/renew", Role::holder, handle_request, "Hold on for longer", "Renew", "Lock"},
    Route{"POST", "/v1/release", Role::holder, handle_request, "Give a lock back", "Release", "Lock"},
    Route{"POST", "/v1/cancel", Role::holder, handle_request, "Leave the queue", "Cancel", "Lock"},
    Route{"POST", "/v1/transfer", Role::holder, handle_request, "Hand a lease to another holder", "Transfer", "Grant"},
    Route{"POST", "/v1/expire", Role::holder, handle_request, "Announce that a lease has run out", "Expire", "Lock"},
    Route{"POST", "/v1/fenced", Role::holder, handle_request, "Report a write that a fence refused", "Fenced", "Lock"},
    Route{"POST", "/v1/check", Role::viewer, handle_request, "Is this token the current one?", "Check", "Lock"},
    Route{"POST", "/v1/unlock", Role::admin, handle_request, "Take a lock away from its holder", "Unlock", "Lock"},
    Route{"POST", "/v1/override/request", Role::holder, handle_request, "Ask the holder to hand a lock over",
          "OverrideRequest", "Grant"},
    Route{"POST", "/v1/override/approve", Role::holder, handle_request, "Hand the lock to whoever asks for it",
          "OverrideAnswer", "Lock"},
    Route{"POST", "/v1/override/deny", Role::holder, handle_request, "Refuse to hand the lock over", "OverrideAnswer",
          "Lock"},
    Route{"POST", "/v1/batch", Role::viewer, handle_batch, "Several requests at once", "Batch", "Replies"},
    Route{"POST", "/v1/wait", Role::viewer, handle_wait, "Wait until one of many watches fires", "Wait", "Fired"},
    Route{"GET", "/v1/check", Role::viewer, handle_gate, "The gate of a proxy: 204, or 412", "", "", gate_parameters},
    Route{"GET", "/v1/lock", Role::viewer, handle_lock, "One lock", "", "Lock", lock_parameters},
    Route{"GET", "/v1/locks", Role::viewer, handle_locks, "Locks by name", "", "Locks", locks_parameters},
    Route{"GET", "/v1/overrides", Role::viewer, handle_overrides, "Who asks for which lock", "", "Overrides"},
    Route{"GET", "/v1/history", Role::viewer, handle_history, "The audit log", "", "Events", history_parameters},
    Route{"GET", "/v1/events", Role::viewer, handle_events,
          "The events of all locks, as a stream (Accept: text/event-stream) or page by page", "", "EventPage",
          events_parameters},
    Route{"GET", "/v1/store", Role::viewer, handle_store, "What the store is and promises", "", "Store",
          store_parameters},
    Route{"GET", "/v1/session", Role::viewer, handle_session, "Who the caller is", "", "Session"},
    Route{"POST", "/v1/session", Role::nobody, handle_sign_in, "Sign a browser in", "SignIn", "Session"},
    Route{"DELETE", "/v1/session", Role::nobody, handle_sign_out, "Sign a browser out", "", "SignedOut"},
    Route{"GET", "/metrics", Role::viewer, handle_metrics, "Figures for Prometheus"},
    Route{"GET", "/healthz", Role::nobody, handle_health, "Whether the daemon runs", "", "Health"},
    Route{"GET", "/readyz", Role::nobody, handle_ready, "Whether it can reach its store", "", "Ready"},
    Route{"GET", "/openapi.json", Role::nobody, handle_openapi, "This document", "", "Document"},
    Route{"GET", "/*", Role::nobody, handle_console, "The web console"},
};

bool matches(const Route& route, std::string_view path) {
    if (!route.path.ends_with('*')) return route.path == path;
    return path.starts_with(route.path.substr(0, route.path.size() - 1));
}

HttpReply wrong_method(std::string_view path) {
    HttpReply reply = reply_with({Errc::usage, "this address has no such method"}, 405);
    std::string allowed;
    for (const Route& route : all_routes)
        if (route.path == path) allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    reply.headers.emplace_back("Allow", allowed);
    return reply;
}

}  // namespace

std::span<const Route> routes() { return all_routes; }

void dispatch(Services& services, const ExchangePtr& exchange) {
    const HttpRequest& request = exchange->request;
    if (auto refused = refused_origin(request, services.options)) return exchange->reply(std::move(*refused));

    const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    const auto* const route = std::ranges::find_if(
        all_routes, [&](const Route& each) { return each.method == method && matches(each, request.path); });
    const bool is_known = std::ranges::any_of(all_routes, [&](const Route& each) { return each.path == request.path; });
    const bool is_page = route != all_routes.end() && route->path.ends_with('*');
    if (route == all_routes.end() || (is_page && is_known)) {
        if (is_known) return exchange->reply(wrong_method(request.path));
        return exchange->reply(reply_with({Errc::usage, "there is nothing at this address"}, 404));
    }
    exchange->route = route->path;

    if (route->needs != Role::nobody) {
        auto who = services.authorizer.authorize(request);
        if (!who) {
            HttpReply refused = reply_with(who.error(), 401);
            refused.headers.emplace_back("WWW-Authenticate", "Bearer");
            return exchange->reply(std::move(refused));
        }
        exchange->who = std::move(*who);
        if (auto forged = Authorizer::expect_no_forgery(request, exchange->who); !forged)
            return exchange->reply(reply_with(forged.error(), 403));
        if (exchange->who.highest_role() < route->needs)
            return exchange->reply(reply_with(
                {Errc::denied, "this needs the role " + std::string(name_of(route->needs)) + " for some lock"}, 403));
    }
    route->handle(services, exchange);
}

}  // namespace holdfast::server
