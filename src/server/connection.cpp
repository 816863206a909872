#include "server/connection.hpp"

#include "server/head.hpp"
#include "server/http_exchange.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

namespace holdfast::server {
namespace {

namespace http = boost::beast::http;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t read_size = std::size_t{4} << 10;
/// Of requests that a client sends before it has the answer to the first.
constexpr std::size_t most_pipelined = std::size_t{64} << 10;
constexpr milliseconds time_to_take_a_refusal{1'000};
constexpr auto never = steady_clock::time_point::max();

/// What can never become a head is not waited for: an empty line, a line end without CR, a zero byte.
bool cannot_begin_a_head(std::string_view text) {
    if (text.starts_with("\r\n") || text.find('\0') != std::string_view::npos) return true;
    for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
        if (at == 0 || text[at - 1] != '\r') return true;
    return false;
}

class HttpConnection final : public Connection, public Outlet, public std::enable_shared_from_this<HttpConnection> {
public:
    HttpConnection(const ConnectionHost& host, std::unique_ptr<Transport> transport, std::string peer,
                   std::function<void()> ended)
        : host_(host),
          transport_(std::move(transport)),
          peer_(std::move(peer)),
          ended_(std::move(ended)),
          guard_(host.context) {}

    void start() {
        allow(may_read_, host_.limits.read_time);
        transport_->handshake([self = shared_from_this()](boost::system::error_code error, std::size_t) {
            if (error) return self->abort();
            self->state_ = State::head;
            self->advance();
        });
    }

    void stop() override {
        is_stopping_ = true;
        if (state_ == State::head && input_.empty()) return abort();
        if (current_ && current_->state == HttpExchange::State::streams) current_->end_stream();
    }
    void abort() override {
        is_broken_ = true;
        advance();
    }

    void push(Text text) override {
        if (is_broken_ || text->empty()) return;
        unsent_ += text->size();
        output_.push_back(std::move(text));
        write_more();
    }
    void completed(int status) override {
        host_.answered(*current_, status,
                       std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - current_->began));
        advance();
    }
    [[nodiscard]] std::size_t unsent() const override { return unsent_; }
    [[nodiscard]] Instant wall() const override { return host_.clock.wall(); }
    [[nodiscard]] bool is_stopping() const override { return is_stopping_; }

private:
    /// What is awaited of the client, or of the daemon.
    enum class State { handshake, head, body, answer, last_words, over };
    enum class Step { goes_on, waits };

    void advance();
    [[nodiscard]] Step step();
    [[nodiscard]] Step take_head();
    [[nodiscard]] Step take_body();
    [[nodiscard]] Step take_chunks();
    [[nodiscard]] Step await_more();
    [[nodiscard]] Step hand_over(std::string body);
    [[nodiscard]] Step await_answer();
    [[nodiscard]] Step linger();
    void begin_linger();
    [[nodiscard]] Step refuse(std::string_view why, int status);

    void start_read();
    void write_more();
    void took(std::size_t bytes);
    void finish();

    /// The connection is cut unless it is told otherwise by then.
    void allow(steady_clock::time_point& deadline, milliseconds time);
    [[nodiscard]] steady_clock::time_point deadline() const { return std::min(may_read_, may_write_); }
    void watch_deadline();

    const ConnectionHost& host_;
    std::unique_ptr<Transport> transport_;
    const std::string peer_;
    std::function<void()> ended_;
    asio::steady_timer guard_;
    steady_clock::time_point may_read_ = never;   ///< Until then, the client has to send what is awaited,
    steady_clock::time_point may_write_ = never;  ///< and to take more of what is written.
    steady_clock::time_point guarded_ = never;    ///< What `guard_` waits for.

    std::array<char, read_size> read_{};
    std::string input_{};  ///< What was read and not used yet.
    bool is_reading_ = false;
    bool is_at_end_ = false;  ///< The client sends nothing more.
    std::deque<Text> output_{};
    std::size_t taken_ = 0;  ///< Of the first text, bytes that were written.
    std::size_t unsent_ = 0;
    bool is_writing_ = false;
    bool is_broken_ = false;
    bool is_stopping_ = false;
    std::shared_ptr<HttpExchange> current_{};
    State state_ = State::handshake;
    bool is_advancing_ = false;
    bool has_changed_ = false;
    bool has_continued_ = false;
    bool is_idle_ = true;  ///< Between two requests.
    std::size_t body_size_ = 0;
    std::optional<http::request_parser<http::string_body>> parser_{};  ///< Of a body that comes in chunks.
};

void HttpConnection::allow(steady_clock::time_point& deadline_of, milliseconds time) {
    deadline_of = steady_clock::now() + time;
    if (deadline() < guarded_) watch_deadline();
}

/// One timer for the whole connection: setting a deadline only stores a number, unless it is earlier than before.
void HttpConnection::watch_deadline() {
    guarded_ = deadline();
    guard_.expires_at(guarded_);
    guard_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto self = weak.lock();
        if (error || !self || self->is_broken_) return;
        if (steady_clock::now() >= self->deadline()) return self->abort();
        self->guarded_ = never;
        if (self->deadline() != never) self->watch_deadline();
    });
}

void HttpConnection::start_read() {
    if (is_reading_ || is_at_end_ || is_broken_) return;
    is_reading_ = true;
    transport_->read(asio::buffer(read_),
                     [self = shared_from_this()](boost::system::error_code error, std::size_t bytes) {
                         self->is_reading_ = false;
                         self->input_.append(self->read_.data(), bytes);
                         if (error) self->is_at_end_ = true;
                         self->advance();
                     });
}

void HttpConnection::write_more() {
    if (is_writing_ || is_broken_ || output_.empty()) return;
    std::array<asio::const_buffer, 16> buffers;
    const auto gather = [&] {
        const std::size_t count = std::min(buffers.size(), output_.size());
        for (std::size_t i = 0; i < count; ++i) buffers[i] = asio::buffer(*output_[i]);
        buffers[0] += taken_;
        return std::span(buffers).first(count);
    };
    // Mostly there is room for all of it, and then nothing has to be waited for.
    took(transport_->write_now(gather()));
    if (output_.empty()) return;
    is_writing_ = true;
    allow(may_write_, host_.limits.write_time);
    transport_->write(gather(), [self = shared_from_this()](boost::system::error_code error, std::size_t bytes) {
        self->is_writing_ = false;
        if (error) return self->abort();
        self->took(bytes);
        self->write_more();
        if (!self->output_.empty()) return;
        self->may_write_ = never;
        self->advance();
        if (self->current_) self->current_->tell_drained();
    });
}

/// The client was sent so many bytes more.
void HttpConnection::took(std::size_t bytes) {
    unsent_ -= bytes;
    for (taken_ += bytes; !output_.empty() && taken_ >= output_.front()->size();) {
        taken_ -= output_.front()->size();
        output_.pop_front();
    }
}

/// Answers what cannot be understood. The connection ends with it: nobody knows where the next request begins.
HttpConnection::Step HttpConnection::refuse(std::string_view why, int status) {
    current_ = std::make_shared<HttpExchange>(weak_from_this());
    current_->keeps_alive = false;
    current_->request.peer = peer_;
    current_->route = "(malformed)";
    state_ = State::answer;
    current_->reply(reply_with({Errc::usage, std::string(why)}, status));
    return Step::goes_on;
}

/// Goes on as far as it can. Whatever happens to the connection ends here.
void HttpConnection::advance() {
    has_changed_ = true;
    if (is_advancing_) return;
    is_advancing_ = true;
    const auto self = shared_from_this();
    while (std::exchange(has_changed_, false))
        while (state_ != State::over && step() == Step::goes_on) continue;
    is_advancing_ = false;
}

HttpConnection::Step HttpConnection::step() {
    if (is_broken_) {
        finish();
        return Step::waits;
    }
    switch (state_) {
        case State::head: return take_head();
        case State::body: return take_body();
        case State::answer: return await_answer();
        case State::last_words: return linger();
        case State::handshake:
        case State::over: break;
    }
    return Step::waits;
}

HttpConnection::Step HttpConnection::take_head() {
    const auto end = input_.find("\r\n\r\n");
    const bool is_whole = end != std::string::npos && end + 4 <= host_.limits.header;
    if (!is_whole && (end != std::string::npos || input_.size() > host_.limits.header))
        return refuse("the header is too long", 431);
    if (!is_whole && cannot_begin_a_head(input_)) return refuse("this is no request", 400);
    if (!is_whole) {
        if (is_at_end_) {
            begin_linger();
            return Step::goes_on;
        }
        // The time of a request begins with its first byte.
        if (is_idle_ && !input_.empty()) allow(may_read_, host_.limits.read_time);
        is_idle_ = input_.empty();
        start_read();
        return Step::waits;
    }
    auto head = parse_head(std::string_view(input_).substr(0, end + 4));
    if (!head) return refuse(head.error().message, 400);
    current_ = std::make_shared<HttpExchange>(weak_from_this());
    current_->keeps_alive = head->keeps_alive;
    current_->is_http10 = head->is_http10;
    current_->request = std::move(head->request);
    current_->request.peer = peer_;
    current_->request.is_tls = host_.is_tls;
    has_continued_ = !head->expects_continue;
    if (head->length > host_.limits.body) return refuse("the body is too long", 413);
    state_ = State::body;
    if (!head->is_chunked) {
        input_.erase(0, end + 4);
        body_size_ = static_cast<std::size_t>(head->length);
        return Step::goes_on;
    }
    // It reads the head once more.
    parser_.emplace();
    parser_->eager(true);
    parser_->body_limit(host_.limits.body);
    parser_->header_limit(static_cast<std::uint32_t>(host_.limits.header + 16));
    return Step::goes_on;
}

HttpConnection::Step HttpConnection::take_body() {
    if (parser_) return take_chunks();
    if (input_.size() < body_size_) return await_more();
    std::string body = input_.substr(0, body_size_);
    input_.erase(0, body_size_);
    return hand_over(std::move(body));
}

HttpConnection::Step HttpConnection::take_chunks() {
    boost::system::error_code error;
    while (!error && !input_.empty() && !parser_->is_done()) input_.erase(0, parser_->put(asio::buffer(input_), error));
    if (error && error != http::error::need_more) {
        const bool is_long = error == http::error::body_limit;
        return refuse(is_long ? "the body is too long" : "the request cannot be read", is_long ? 413 : 400);
    }
    // What the parser leaves is the beginning of a chunk's header or of the trailer. It has no limit for them.
    if (!parser_->is_done() && input_.size() > host_.limits.header)
        return refuse("the header of a chunk, or the trailer, is too long", 431);
    if (!parser_->is_done()) return await_more();
    std::string body = std::move(parser_->get().body());
    parser_.reset();
    return hand_over(std::move(body));
}

/// The body is not complete.
HttpConnection::Step HttpConnection::await_more() {
    if (is_at_end_) {
        begin_linger();
        return Step::goes_on;
    }
    if (!std::exchange(has_continued_, true))
        push(std::make_shared<const std::string>("HTTP/1.1 100 Continue\r\n\r\n"));
    start_read();
    return Step::waits;
}

HttpConnection::Step HttpConnection::hand_over(std::string body) {
    current_->request.body = std::move(body);
    may_read_ = never;
    state_ = State::answer;
    const auto exchange = current_;
    host_.dispatch(exchange);
    return Step::goes_on;
}

/// A client that hangs up meanwhile is noticed at once.
HttpConnection::Step HttpConnection::await_answer() {
    if (current_->state != HttpExchange::State::is_complete) {
        // Half a connection is enough for a short answer, but nobody waits on it.
        if (is_at_end_ && current_->has_listener()) {
            is_broken_ = true;
            return Step::goes_on;
        }
        if (input_.size() < most_pipelined) start_read();
        return Step::waits;
    }
    if (!output_.empty()) return Step::waits;
    const bool keeps_alive = current_->keeps_alive && !is_stopping_;
    current_.reset();
    if (!keeps_alive) {
        begin_linger();
        return Step::goes_on;
    }
    state_ = State::head;
    is_idle_ = input_.empty();
    allow(may_read_, is_idle_ ? host_.limits.idle_time : host_.limits.read_time);
    return Step::goes_on;
}

/// Closing with unread input would take the last answer away from the client again.
void HttpConnection::begin_linger() {
    current_.reset();
    state_ = State::last_words;
    transport_->end_output();
    allow(may_read_, time_to_take_a_refusal);
}

HttpConnection::Step HttpConnection::linger() {
    input_.clear();
    if (is_at_end_) is_broken_ = true;
    start_read();
    return is_broken_ ? Step::goes_on : Step::waits;
}

void HttpConnection::finish() {
    state_ = State::over;
    guard_.cancel();
    transport_->close();
    if (const auto exchange = std::exchange(current_, nullptr)) exchange->tell_gone();
    if (const auto ended = std::exchange(ended_, nullptr)) ended();
}

}  // namespace

std::shared_ptr<Connection> start_connection(const ConnectionHost& host, std::unique_ptr<Transport> transport,
                                             std::string peer, std::function<void()> ended) {
    auto connection = std::make_shared<HttpConnection>(host, std::move(transport), std::move(peer), std::move(ended));
    connection->start();
    return connection;
}

}  // namespace holdfast::server
