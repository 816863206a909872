// Who calls: asking for it, signing in and out; and the figures of the daemon, which have no lock either.
#include "json/fields.hpp"
#include "server/figures/daemon_metrics.hpp"
#include "server/handlers.hpp"

namespace holdfast::server {
namespace {

HttpReply session_of(const Identity& who) {
    std::vector<std::string> areas;
    std::vector<std::string> grants;
    for (const access::Grant& grant : who.grants) {
        areas.push_back(grant.area);
        grants.push_back(grant.text());
    }
    HttpReply reply;
    reply.body = json::Object()
                     .set("user", json::Value::text_or_null(who.user))
                     .set("role", json::Value::text(name_of(who.highest_role())))
                     .set("prefixes", json::Value::texts(areas))
                     .set("grants", json::Value::texts(grants))
                     .set("auth", json::Value::text(name_of(who.auth)))
                     .done()
                     .written();
    return reply;
}

Result<std::string> token_in(const HttpRequest& request) {
    const auto document = json::parse(request.body);
    if (!document) return std::unexpected(document.error());
    json::Fields in(*document);
    auto token = in.text("token");
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    return token;
}

}  // namespace

void handle_session(Services& /*services*/, const ExchangePtr& exchange) { exchange->reply(session_of(exchange->who)); }

void handle_sign_in(Services& services, const ExchangePtr& exchange) {
    const auto token = token_in(exchange->request);
    if (!token) return exchange->reply(reply_with(token.error()));
    auto who = services.authorizer.door().by_token(*token);
    if (!who) return exchange->reply(reply_with(who.error(), who.error().code == Errc::denied ? 401 : 400));
    who->auth = access::Auth::cookie;
    HttpReply reply = session_of(*who);
    reply.headers.emplace_back("Set-Cookie", services.authorizer.door().sign_in_cookie(*token));
    exchange->reply(std::move(reply));
}

void handle_sign_out(Services& services, const ExchangePtr& exchange) {
    HttpReply reply;
    reply.body = R"({"signed_out":true})";
    reply.headers.emplace_back("Set-Cookie", services.authorizer.door().sign_out_cookie());
    exchange->reply(std::move(reply));
}

void handle_metrics(Services& services, const ExchangePtr& exchange) {
    if (!access::may(exchange->who, Endpoint::metrics))
        return exchange->reply(reply_with(access::denied(exchange->who, Endpoint::metrics)));
    exchange->reply({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = services.metrics.text()});
}

}  // namespace holdfast::server
