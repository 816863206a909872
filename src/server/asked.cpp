#include "server/asked.hpp"

#include "client/limits.hpp"
#include "json/error.hpp"
#include "json/fields.hpp"
#include "json/lock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;

/// Puts the policies' terms in the place of what the client left out.
struct Terms {
    const Services& services;
    const json::SentRequest& sent;  ///< Without its request.
    Asked& asked;

    Result<void> operator()(Acquire& r) const {
        client::Wish wish{.max_hold = r.max_hold, .unless_held = r.unless_held};
        if (sent.says("ttl_ms")) wish.ttl = r.ttl.time();
        if (sent.wait) wish.wait = *sent.wait;
        if (!sent.wait && r.ticket) wish.wait = r.ticket->time();
        const auto terms = services.options.terms(r.name, wish);
        if (!terms) return std::unexpected(terms.error());
        r.ttl = terms->ttl;
        r.max_hold = terms->max_hold;
        r.unless_held = terms->unless_held;
        if (r.takes_over) {
            if (!terms->stale_after) return refuse_take_over(r.name);
            r.takes_over->after = std::max(r.takes_over->after, *terms->stale_after);
        }
        asked.wait = std::min(sent.wait.value_or(milliseconds{0}), services.options.limits.longest_wait);
        return {};
    }
    Result<void> operator()(Renew& r) const {
        client::Wish wish{.renews = true};
        asked.wants_same_ttl = !sent.says("ttl_ms");
        if (!asked.wants_same_ttl) wish.ttl = r.ttl.time();
        const auto terms = services.options.terms(r.name, wish);
        if (!terms) return std::unexpected(terms.error());
        return {};
    }
    Result<void> operator()(Ask& r) const {
        if (sent.wait) return fail(Errc::usage, "wait_ms: follow the lock with /v1/wait or /v1/events instead");
        client::Wish wish;
        if (sent.says("ttl_ms")) wish.ttl = r.ttl.time();
        const auto terms = services.options.terms(r.name, wish);
        if (!terms) return std::unexpected(terms.error());
        r.ttl = terms->ttl;
        return {};
    }
    Result<void> operator()(Answer& r) const {
        // The policy binds the asker, too.
        const auto terms = services.options.terms(r.name, {});
        if (!terms) return std::unexpected(terms.error());
        r.longest_ttl = lesser(r.longest_ttl, terms->longest_ttl);
        r.max_hold = lesser(r.max_hold, terms->max_hold);
        return {};
    }
    template <class Other>
    Result<void> operator()(Other& /*request*/) const {
        return {};
    }

    static Result<void> refuse_take_over(const LockName& name) {
        Error error{Errc::denied,
                    fmt::format("no policy says when a lease of {} is stale, so none is taken over while it lives",
                                printable(name.text()))};
        error.hint = "ask its holder with /v1/override/request";
        return std::unexpected(std::move(error));
    }

    static std::optional<milliseconds> lesser(std::optional<milliseconds> a, std::optional<milliseconds> b) {
        if (!a || !b) return a ? a : b;
        return std::min(*a, *b);
    }
};

/// Of whose lease the answer tells.
const Credentials* granted_to(const Request& request) {
    if (const auto* acquire = std::get_if<Acquire>(&request)) return &acquire->as;
    if (const auto* transfer = std::get_if<Transfer>(&request)) return &transfer->to_as;
    if (const auto* ask = std::get_if<Ask>(&request)) return &ask->as;
    return nullptr;
}

}  // namespace

Result<Asked> allow(const Services& services, const Exchange& exchange, json::SentRequest sent) {
    if (auto allowed = permit(exchange.who, sent.request); !allowed) return std::unexpected(allowed.error());
    Asked asked{.request = std::move(sent.request)};
    if (auto agreed = std::visit(Terms{services, sent, asked}, asked.request); !agreed)
        return std::unexpected(agreed.error());
    access::sign(exchange.who, asked.request);
    if (auto* const answer = std::get_if<Answer>(&asked.request)) {
        // The daemon says so, not its client.
        answer->breaks_glass = false;
        if (!answer->by) asked.answers_as = exchange.who;
    }
    if (auto error = client::beyond_limits(asked.request)) return std::unexpected(std::move(*error));
    return asked;
}

Result<Deadline> time_to_answer(const Services& services, const HttpRequest& request) {
    const auto patience = services.options.patience;
    const auto before = request.header("holdfast-before");
    if (!before) return Deadline::in(services.clock, patience);
    std::int64_t at = 0;
    const auto [end, error] = std::from_chars(before->data(), before->data() + before->size(), at);
    if (error != std::errc{} || end != before->data() + before->size() || at < 0 || at > json::number_limit)
        return fail(Errc::usage, "Holdfast-Before is not a number of milliseconds");
    const milliseconds left = Instant{milliseconds{at}} - services.clock.wall();
    if (left <= milliseconds{0})
        return fail(Errc::store_unavailable, "the request came after the time that its header Holdfast-Before allows");
    return Deadline::in(services.clock, std::min(left, patience));
}

Result<void> expect_store(const Services& services, const HttpRequest& request) {
    const auto meant = request.header("holdfast-store");
    if (!meant) return {};
    const auto id = StoreId::parse(*meant);
    if (!id) return std::unexpected(id.error());
    const auto own = services.store.store_id();
    if (!own || *own == *id) return {};
    Error other{Errc::store_unavailable, "the daemon is in front of another store now"};
    other.store_is_lost = true;
    return std::unexpected(std::move(other));
}

Result<void> look_up(Store& store, std::vector<Asked>& asked, Deadline deadline) {
    for (Asked& each : asked) {
        if (each.answers_as) {
            auto& answer = std::get<Answer>(each.request);
            if (auto allowed = permit_answer(*each.answers_as, answer, store, deadline); !allowed) return allowed;
        }
        auto* const renew = std::get_if<Renew>(&each.request);
        if (renew == nullptr || !each.wants_same_ttl) continue;
        const auto lock = store.inspect(renew->name, deadline);
        if (!lock) return std::unexpected(lock.error());
        // Without a lease it is refused, whatever its ttl.
        if (!lock->lease) continue;
        if (const auto before = Ttl::of(lock->lease->ttl)) renew->ttl = *before;
    }
    return {};
}

json::Object document_of(const Request& request, const Reply& reply, const StoreInfo& store) {
    json::Object document = json::reply(reply, store);
    if (!reply) return document;
    if (const Credentials* const as = granted_to(request)) document.set("lease", json::Value::text(as->reveal()));
    if (std::holds_alternative<Release>(request)) document.set("released", json::Value::boolean(true));
    if (std::holds_alternative<Check>(request)) document.set("current", json::Value::boolean(true));
    return document;
}

int status_of(const Reply& reply) {
    if (reply) return 200;
    const int status = row_of(reply.error().code).http_status;
    return status == 0 ? 500 : status;
}

HttpReply answer_to(const Request& request, const Reply& reply, const StoreInfo& store) {
    HttpReply answer{.status = status_of(reply)};
    answer.body = document_of(request, reply, store).done().written();
    if (answer.status == 503) answer.headers.emplace_back("Retry-After", "1");
    return answer;
}

}  // namespace holdfast::server
