// The endpoints that send requests of the protocol to the store.
#include "json/lock.hpp"
#include "json/request.hpp"
#include "server/asked.hpp"
#include "server/handlers.hpp"
#include "server/waiting.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace holdfast::server {
namespace {

/// `/v1/override/request` -> `override_request`
std::string op_of(std::string_view path) {
    path.remove_prefix(std::string_view("/v1/").size());
    std::string op(path);
    std::ranges::replace(op, '/', '_');
    return op;
}

Ttl usual_ttl() { return *Ttl::of(client::default_ttl); }

Result<json::Node> document_in(const Services& services, const HttpRequest& request) {
    return json::parse(request.body, {.bytes = services.options.limits.body});
}

HttpReply too_many() {
    return reply_with({Errc::store_unavailable, "too many requests wait for the store; try again in a moment"});
}

std::vector<Request> requests_of(const std::vector<Asked>& asked) {
    std::vector<Request> requests;
    requests.reserve(asked.size());
    std::ranges::transform(asked, std::back_inserter(requests), &Asked::request);
    return requests;
}

using Answer = HttpReply (*)(const std::vector<Asked>& asked, const Applied& applied);

void submit(Services& services, const ExchangePtr& exchange, const std::shared_ptr<const std::vector<Asked>>& asked,
            Deadline deadline, Answer answer) {
    const bool taken = services.batcher.submit(
        requests_of(*asked), deadline,
        [exchange, asked, answer](const Applied& applied) { exchange->reply(answer(*asked, applied)); });
    if (!taken) exchange->reply(too_many());
}

/// Sends them, after a look where one of them needs it.
void send(Services& services, const ExchangePtr& exchange, std::vector<Asked> asked, Deadline deadline, Answer answer) {
    auto shared = std::make_shared<std::vector<Asked>>(std::move(asked));
    if (std::ranges::none_of(*shared, &Asked::needs_look)) return submit(services, exchange, shared, deadline, answer);
    const bool runs = services.readers.run([&services, exchange, shared, deadline, answer] {
        auto looked = look_up(services.store, *shared, deadline);
        services.loop.post([&services, exchange, shared, deadline, answer, looked = std::move(looked)] {
            if (!looked) return exchange->reply(reply_with(looked.error()));
            submit(services, exchange, shared, deadline, answer);
        });
    });
    if (!runs) exchange->reply(too_many());
}

HttpReply answer_one(const std::vector<Asked>& asked, const Applied& applied) {
    if (!applied.replies)
        return answer_to(asked.front().request, std::unexpected(applied.replies.error()), *applied.store);
    return answer_to(asked.front().request, applied.replies->front(), *applied.store);
}

HttpReply answer_batch(const std::vector<Asked>& asked, const Applied& applied) {
    if (!applied.replies) return reply_with(applied.replies.error());
    std::vector<json::Value> replies;
    replies.reserve(asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const Reply& reply = (*applied.replies)[i];
        replies.push_back(document_of(asked[i].request, reply, *applied.store)
                              .set("status", json::Value::number(std::int64_t{status_of(reply)}))
                              .done());
    }
    HttpReply answer;
    answer.body = json::Object().set("replies", json::Value::array(replies)).done().written();
    return answer;
}

Result<std::vector<Asked>> read_all(const Services& services, const Exchange& exchange) {
    const auto document = document_in(services, exchange.request);
    if (!document) return std::unexpected(document.error());
    auto sent = json::read_batch(*document, usual_ttl(), services.options.limits.batch);
    if (!sent) return std::unexpected(sent.error());
    std::vector<Asked> asked;
    asked.reserve(sent->size());
    for (json::SentRequest& each : *sent) {
        auto one = allow(services, exchange, std::move(each));
        if (!one) return std::unexpected(one.error());
        if (one->wait > std::chrono::milliseconds{0})
            return fail(Errc::usage, "wait_ms: only a request of its own can wait");
        asked.push_back(std::move(*one));
    }
    return asked;
}

Result<Asked> read_one(const Services& services, const Exchange& exchange) {
    const auto document = document_in(services, exchange.request);
    if (!document) return std::unexpected(document.error());
    auto sent = json::read_request(*document, op_of(exchange.request.path), usual_ttl());
    if (!sent) return std::unexpected(sent.error());
    return allow(services, exchange, std::move(*sent));
}

}  // namespace

void handle_request(Services& services, const ExchangePtr& exchange) {
    const auto deadline = time_to_answer(services, exchange->request);
    if (!deadline) return exchange->reply(reply_with(deadline.error()));
    if (auto right = expect_store(services, exchange->request); !right)
        return exchange->reply(reply_with(right.error()));
    auto asked = read_one(services, *exchange);
    if (!asked) return exchange->reply(reply_with(asked.error()));
    if (asked->wait > std::chrono::milliseconds{0})
        return services.waiting.admit(exchange, std::get<Acquire>(asked->request), asked->wait);
    send(services, exchange, {std::move(*asked)}, *deadline, answer_one);
}

void handle_batch(Services& services, const ExchangePtr& exchange) {
    const auto deadline = time_to_answer(services, exchange->request);
    if (!deadline) return exchange->reply(reply_with(deadline.error()));
    if (auto right = expect_store(services, exchange->request); !right)
        return exchange->reply(reply_with(right.error()));
    auto asked = read_all(services, *exchange);
    if (!asked) return exchange->reply(reply_with(asked.error()));
    if (asked->empty()) {
        HttpReply nothing;
        nothing.body = json::Object().set("replies", json::Value::array({})).done().written();
        return exchange->reply(std::move(nothing));
    }
    send(services, exchange, std::move(*asked), *deadline, answer_batch);
}

}  // namespace holdfast::server
