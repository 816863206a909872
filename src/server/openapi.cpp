#include "json/value.hpp"
#include "server/handlers.hpp"
#include "server/openapi_schemas.hpp"
#include "server/router.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace holdfast::server {
namespace {

using json::Object;
using json::Value;

constexpr std::string_view description =
    "Locks that run out, and whose tokens only rise, so that a resource can refuse a holder of before.";

Value tag(std::string_view name, std::string_view meaning) {
    return Object().set("name", Value::text(name)).set("description", Value::text(meaning)).done();
}

Value reference(std::string_view kind, std::string_view name) {
    return Object().set("$ref", Value::text("#/components/" + std::string(kind) + "/" + std::string(name))).done();
}

Value content(const Value& schema, std::string_view type = "application/json") {
    return Object().set(type, Object().set("schema", schema).done()).done();
}

/// `/v1/override/request` with POST -> `post_v1_override_request`
std::string operation_id(const Route& route) {
    std::string id = std::string(route.method) + std::string(route.path);
    std::ranges::transform(id, id.begin(), [](char c) {
        const bool is_upper = c >= 'A' && c <= 'Z';
        return is_upper ? static_cast<char>(c - 'A' + 'a') : c == '/' || c == '.' || c == '*' ? '_' : c;
    });
    return id;
}

Value parameters_of(const Route& route) {
    std::vector<Value> all;
    for (const Parameter& each : route.parameters)
        all.push_back(Object()
                          .set("name", Value::text(each.name))
                          .set("in", Value::text("query"))
                          .set("description", Value::text(each.meaning))
                          .set("required", Value::boolean(each.is_required))
                          .set("schema", Object().set("type", Value::text(each.type)).done())
                          .done());
    return Value::array(all);
}

Value answers_of(const Route& route) {
    Object answers;
    if (route.reply.empty() && route.path == "/v1/check")
        answers.set("204", Object().set("description", Value::text("The token is the current one.")).done());
    else if (route.reply.empty())
        answers.set("200", Object()
                               .set("description", Value::text(route.summary))
                               .set("content", content(Object().set("type", Value::text("string")).done(),
                                                       route.path == "/metrics" ? "text/plain" : "text/html"))
                               .done());
    else
        answers.set("200", Object()
                               .set("description", Value::text(route.summary))
                               .set("content", content(reference("schemas", route.reply)))
                               .done());
    answers.set("4XX", reference("responses", "Refused"));
    if (route.needs != Role::nobody || route.path == "/readyz") answers.set("5XX", reference("responses", "Failed"));
    return answers.done();
}

Value operation_of(const Route& route) {
    Object operation;
    operation.set("operationId", Value::text(operation_id(route)))
        .set("summary", Value::text(route.summary))
        .set("description",
             Value::text(std::string(route.summary) + ". Role: " + std::string(name_of(route.needs)) + "."))
        .set("tags", Value::texts(std::vector<std::string>{route.path.starts_with("/v1/") ? "locks" : "daemon"}));
    if (route.needs == Role::nobody) operation.set("security", Value::array({Object().done()}));
    if (!route.parameters.empty()) operation.set("parameters", parameters_of(route));
    if (!route.body.empty())
        operation.set("requestBody", Object()
                                         .set("required", Value::boolean(true))
                                         .set("content", content(reference("schemas", route.body)))
                                         .done());
    return operation.set("responses", answers_of(route)).done();
}

/// A path ends in `*` where it stands for many.
std::string shown_path(const Route& route) { return route.path == "/*" ? "/" : std::string(route.path); }

std::string document(std::string_view version) {
    std::map<std::string, Object> paths;
    for (const Route& route : routes()) {
        std::string method(route.method);
        std::ranges::transform(method, method.begin(), [](char c) { return static_cast<char>(c - 'A' + 'a'); });
        paths[shown_path(route)].set(method, operation_of(route));
    }
    Object all;
    for (const auto& [path, object] : paths) all.set(path, object.done());
    // The schemas are a document of their own; it is put in as it is.
    std::string text = Object()
                           .set("openapi", Value::text("3.1.0"))
                           .set("info", Object()
                                            .set("title", Value::text("Holdfast"))
                                            .set("version", Value::text(version))
                                            .set("summary", Value::text("Leases with fencing tokens"))
                                            .set("description", Value::text(description))
                                            .set("contact", Object().set("name", Value::text("Holdfast")).done())
                                            .set("license", Object()
                                                                .set("name", Value::text("Apache-2.0"))
                                                                .set("identifier", Value::text("Apache-2.0"))
                                                                .done())
                                            .done())
                           .set("tags", Value::array({tag("locks", "Locks, their history and their events."),
                                                      tag("daemon", "The daemon itself.")}))
                           .set("servers", Value::array({Object().set("url", Value::text("/")).done()}))
                           .set("security", Value::array({Object().set("bearer", Value::array({})).done()}))
                           .set("paths", all.done())
                           .done()
                           .written();
    text.pop_back();
    text += ",\"components\":";
    text += openapi_components;
    return text + "}";
}

}  // namespace

void handle_openapi(Services& services, const ExchangePtr& exchange) {
    HttpReply reply;
    reply.body = document(services.options.version);
    exchange->reply(std::move(reply));
}

}  // namespace holdfast::server
