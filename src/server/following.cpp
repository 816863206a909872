// GET /v1/events: a stream, or a page.
#include "json/event.hpp"
#include "server/event_stream.hpp"
#include "server/handlers.hpp"
#include "server/query.hpp"

#include <utility>

namespace holdfast::server {
namespace {

constexpr std::uint64_t usual_page = 1'000;
constexpr std::uint64_t longest_page = 10'000;

/// Where to begin: what a browser sends when it comes back counts more than the address that it was given at first.
/// Absent: at the end.
std::optional<EventCursor> beginning(const HttpRequest& request) {
    const auto last = request.header("last-event-id");
    const auto since = last ? last : request.parameter("since");
    if (since == "end") return std::nullopt;
    return cursor_of(since.value_or(""));
}

bool wants_stream(const HttpRequest& request) {
    return request.header("accept").value_or("").find("text/event-stream") != std::string_view::npos;
}

/// Whether the store understands where to begin is found out while the answer can still be a refusal.
void open_stream(Services& services, const ExchangePtr& exchange, std::optional<EventCursor> since,
                 std::string prefix) {
    if (!since || since->text.empty()) return services.events.open(exchange, std::move(since), std::move(prefix));
    const bool runs = services.readers.run([&services, exchange, since, prefix] {
        auto found = services.store.events(*since, 1, Deadline::in(services.clock, services.options.patience));
        services.loop.post([&services, exchange, since, prefix, found = std::move(found)] {
            if (!found) return exchange->reply(reply_with(found.error()));
            // The store may have taken long, and the feed looks only at those who lose a right from here on.
            auto who = services.authorizer.again(exchange->who);
            if (!who) return exchange->reply(reply_with(who.error(), 401));
            exchange->who = std::move(*who);
            services.events.open(exchange, since, prefix);
        });
    });
    if (!runs) exchange->reply(reply_with({Errc::store_unavailable, "too many requests wait for the store"}));
}

Result<HttpReply> page(Store& store, Deadline deadline, const Identity& who, const std::optional<EventCursor>& since,
                       std::string_view prefix, std::size_t limit) {
    EventPage found;
    if (!since) {
        auto end = store.end_of_events(deadline);
        if (!end) return std::unexpected(end.error());
        found.next = std::move(*end);
    } else {
        auto read = store.events(*since, limit, deadline);
        if (!read) return std::unexpected(read.error());
        found = std::move(*read);
    }
    std::erase_if(found.events, [&](const AuditEvent& event) {
        return !event.name.text().starts_with(prefix) || who.role_for(event.name) < Role::viewer;
    });
    HttpReply reply;
    reply.body = json::event_page(found).done().written();
    return reply;
}

}  // namespace

void handle_events(Services& services, const ExchangePtr& exchange) {
    auto since = beginning(exchange->request);
    std::string prefix(exchange->request.parameter("prefix").value_or(""));
    if (wants_stream(exchange->request) && exchange->request.method == "GET")
        return open_stream(services, exchange, std::move(since), std::move(prefix));
    const auto limit = number_in(exchange->request, "limit", usual_page, longest_page);
    if (!limit) return exchange->reply(reply_with(limit.error()));
    answer_with(services, exchange,
                [who = exchange->who, since = std::move(since), prefix = std::move(prefix),
                 most = static_cast<std::size_t>(*limit)](Store& store, Deadline deadline) {
                    return page(store, deadline, who, since, prefix, most);
                });
}

}  // namespace holdfast::server
