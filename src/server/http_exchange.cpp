#include "server/http_exchange.hpp"

#include <fmt/format.h>

#include <iterator>

namespace holdfast::server {
namespace {

/// So many bytes hold the head of an answer, so that its body follows without a copy of both.
constexpr std::size_t most_of_heads = 256;

constexpr std::string_view end_of_chunk = "\r\n";

}  // namespace

Chunk::Chunk(std::string_view text) {
    if (text.empty()) return;
    std::string written = fmt::format("{:x}\r\n", text.size());
    begin_ = written.size();
    written.reserve(begin_ + text.size() + end_of_chunk.size());
    written += text;
    written += end_of_chunk;
    written_ = std::make_shared<const std::string>(std::move(written));
}

std::string_view Chunk::text() const {
    if (is_empty()) return {};
    return std::string_view(*written_).substr(begin_, written_->size() - begin_ - end_of_chunk.size());
}

std::string HttpExchange::head_of(const HttpReply& reply, std::optional<std::size_t> length) const {
    const auto connection = connection_.lock();
    std::string head;
    head.reserve(most_of_heads + length.value_or(0));
    const auto out = std::back_inserter(head);
    fmt::format_to(out, "HTTP/1.1 {} {}\r\n", reply.status, reason_of(reply.status));
    if (!reply.content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", reply.content_type);
    if (reply.status != 204 && length) fmt::format_to(out, "Content-Length: {}\r\n", *length);
    if (!length && !is_http10) head += "Transfer-Encoding: chunked\r\n";
    if (connection) fmt::format_to(out, "Holdfast-Time: {}\r\n", connection->wall().time_since_epoch().count());
    for (const auto& [name, value] : reply.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
    if (!keeps_alive)
        head += "Connection: close\r\n";
    else if (is_http10)
        head += "Connection: keep-alive\r\n";
    head += "\r\n";
    return head;
}

void HttpExchange::reply(HttpReply reply) {
    const auto connection = connection_.lock();
    if (!connection || state != State::waits) return;
    state = State::is_complete;
    forget_callbacks();
    if (connection->is_stopping()) keeps_alive = false;
    std::string text = head_of(reply, reply.body.size());
    if (request.method != "HEAD" && reply.status != 204) text += reply.body;
    connection->push(std::make_shared<const std::string>(std::move(text)));
    connection->completed(reply.status);
}

void HttpExchange::begin_stream(HttpReply head) {
    const auto connection = connection_.lock();
    if (!connection || state != State::waits) return;
    state = State::streams;
    keeps_alive = false;
    connection->push(std::make_shared<const std::string>(head_of(head, std::nullopt)));
}

void HttpExchange::write(const Chunk& chunk) {
    const auto connection = connection_.lock();
    if (!connection || state != State::streams || chunk.is_empty()) return;
    connection->push(is_http10 ? std::make_shared<const std::string>(chunk.text()) : chunk.written());
}

std::size_t HttpExchange::unsent() const {
    const auto connection = connection_.lock();
    return connection ? connection->unsent() : 0;
}

void HttpExchange::end_stream() {
    const auto connection = connection_.lock();
    if (!connection || state != State::streams) return;
    state = State::is_complete;
    const auto gone = std::exchange(gone_, nullptr);
    forget_callbacks();
    if (!is_http10) connection->push(std::make_shared<const std::string>("0\r\n\r\n"));
    connection->completed(200);
    // Tell the feeder of the stream that it has ended, whichever side ended it.
    if (gone) gone();
}

}  // namespace holdfast::server
