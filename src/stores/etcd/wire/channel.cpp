#include "stores/etcd/wire/channel.hpp"

#include "base/real_clock.hpp"

#include <array>
#include <charconv>
#include <nghttp2/nghttp2.h>
#include <stdexcept>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// Larger answers are refused: no answer to a store's request comes near this.
constexpr std::size_t largest_answer = std::size_t{256} << 20U;
/// The flow-control window: a page of a list fits into it.
constexpr std::int32_t window = 16 << 20;
/// Before each message: whether it is compressed, and its length.
constexpr std::size_t prefix_size = 5;

std::string framed(std::string_view message) {
    std::string out(prefix_size, '\0');
    for (std::size_t i = 1; i < prefix_size; ++i)
        out[i] = static_cast<char>(message.size() >> (8 * (prefix_size - 1 - i)));
    out += message;
    return out;
}

nghttp2_nv header(std::string_view name, std::string_view value) {
    // nghttp2 copies both, although its parameters are not const.
    const auto bytes = [](std::string_view text) {
        return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

/// The text of a status may have `%20` in it.
std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        const char* const digits = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
            out += static_cast<char>(byte);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace

struct Channel::Callbacks {
    static Channel& of(void* user) { return *static_cast<Channel*>(user); }

    static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                         std::uint8_t /*flags*/, void* user) {
        Channel& channel = of(user);
        if (frame->hd.stream_id != channel.stream_) return 0;
        const std::string_view which = text_of(name, name_size);
        const std::string_view text = text_of(value, value_size);
        if (which == ":status") channel.http_status_ = text;
        if (which == "grpc-message") channel.grpc_text_ = unescaped(text);
        if (which == "grpc-status") {
            int status = 0;
            const auto [end, error] = std::from_chars(text.begin(), text.end(), status);
            if (error == std::errc{} && end == text.end()) channel.grpc_status_ = status;
        }
        return 0;
    }

    static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t stream,
                       const std::uint8_t* data, std::size_t size, void* user) {
        Channel& channel = of(user);
        if (stream != channel.stream_) return 0;
        if (channel.received_.size() + size > largest_answer) return NGHTTP2_ERR_CALLBACK_FAILURE;
        channel.received_ += text_of(data, size);
        return 0;
    }

    static int on_close(nghttp2_session* /*session*/, std::int32_t stream, std::uint32_t error_code, void* user) {
        Channel& channel = of(user);
        if (stream == channel.stream_ && !channel.end_) channel.end_ = channel.end_of_stream(error_code);
        return 0;
    }

    static ssize_t read_request(nghttp2_session* /*session*/, std::int32_t /*stream*/, std::uint8_t* into,
                                std::size_t size, std::uint32_t* flags, nghttp2_data_source* /*source*/, void* user) {
        Channel& channel = of(user);
        const std::size_t count = channel.request_.copy(reinterpret_cast<char*>(into), size, channel.handed_over_);
        channel.handed_over_ += count;
        const bool is_all = channel.handed_over_ == channel.request_.size();
        // `send` continues a stream.
        if (channel.is_stream_ && is_all) {
            channel.request_.clear();
            channel.handed_over_ = 0;
            if (count == 0) return NGHTTP2_ERR_DEFERRED;
            return static_cast<ssize_t>(count);
        }
        if (is_all) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(count);
    }
};

void Channel::SessionDeleter::operator()(nghttp2_session* session) const { nghttp2_session_del(session); }

std::expected<std::unique_ptr<Channel>, std::string> Channel::open(const Endpoint& endpoint, const std::string& ca_file,
                                                                   milliseconds timeout) {
    auto connection = Connection::open(endpoint, ca_file, timeout);
    if (!connection) return std::unexpected(connection.error());
    return std::make_unique<Channel>(std::move(*connection), endpoint);
}

Channel::Channel(Connection connection, const Endpoint& endpoint)
    : connection_(std::move(connection)),
      authority_(endpoint.name),
      scheme_(endpoint.url.substr(0, endpoint.url.find(':'))) {
    nghttp2_session_callbacks* made = nullptr;
    if (nghttp2_session_callbacks_new(&made) != 0) throw std::runtime_error("nghttp2 cannot be used");
    const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)> callbacks(
        made, nghttp2_session_callbacks_del);
    nghttp2_session_callbacks_set_on_header_callback(made, Callbacks::on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Callbacks::on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, Callbacks::on_close);
    nghttp2_session* session = nullptr;
    if (nghttp2_session_client_new(&session, made, this) != 0) throw std::runtime_error("nghttp2 cannot be used");
    session_.reset(session);
    const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                              nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window);
}

Channel::~Channel() = default;

bool Channel::is_open() {
    stream_ = -1;
    end_.reset();
    if (!is_broken_ && !receive_pending()) is_broken_ = true;
    return !is_broken_ && nghttp2_session_check_request_allowed(session_.get()) != 0;
}

void Channel::begin(const Call& call) {
    request_ = call.is_stream ? std::string() : framed(call.message);
    handed_over_ = 0;
    is_stream_ = call.is_stream;
    was_sent_ = false;
    received_.clear();
    http_status_.clear();
    grpc_status_.reset();
    grpc_text_.clear();
    end_.reset();
    std::array headers{header(":method", "POST"),    header(":scheme", scheme_),
                       header(":path", call.method), header(":authority", authority_),
                       header("te", "trailers"),     header("content-type", "application/grpc"),
                       header("token", call.token)};
    const nghttp2_data_provider body{{}, Callbacks::read_request};
    stream_ = nghttp2_submit_request(session_.get(), nullptr, headers.data(),
                                     headers.size() - (call.token.empty() ? 1 : 0), &body, nullptr);
    if (stream_ < 0) end_ = CallEnd{CallEnd::How::not_sent, 0, nghttp2_strerror(stream_)};
}

void Channel::send(std::string_view message) {
    if (end_) return;
    request_ += framed(message);
    // Fails if it was not deferred, and then nothing has to be resumed.
    static_cast<void>(nghttp2_session_resume_data(session_.get(), stream_));
}

void Channel::advance(milliseconds time, int wake) {
    if (end_) return;
    if (!send_pending()) return break_off("the connection was broken");
    const bool waits_to_send = !unsent_.empty();
    connection_.wait(waits_to_send ? Connection::For::reading_and_writing : Connection::For::reading, time, wake);
    if (!receive_pending()) break_off("the connection was closed");
}

std::optional<std::string> Channel::take_message() {
    if (received_.size() < prefix_size) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = 1; i < prefix_size; ++i) size = size << 8U | static_cast<unsigned char>(received_[i]);
    if (received_.size() - prefix_size < size) return std::nullopt;
    std::string message = received_.substr(prefix_size, size);
    received_.erase(0, prefix_size + size);
    return message;
}

void Channel::cancel() {
    if (end_ || stream_ < 0) return;
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream_, NGHTTP2_CANCEL);
    end_ = CallEnd{CallEnd::How::in_doubt, 0, "it was cancelled"};
    stream_ = -1;
    if (!send_pending()) is_broken_ = true;
}

CallEnd Channel::call(const Call& call, milliseconds timeout, std::string& message) {
    // In real time.
    const Deadline deadline = Deadline::in(base::real_clock(), timeout);
    begin(call);
    while (!end_) {
        if (deadline.passed(base::real_clock())) {
            break_off("it did not answer in time");
            break;
        }
        advance(deadline.remaining(base::real_clock()));
    }
    CallEnd end = *end_;
    if (end.how != CallEnd::How::answered || end.status != 0) return end;
    auto answer = take_message();
    if (!answer) return {CallEnd::How::in_doubt, 0, "its answer was empty"};
    message = std::move(*answer);
    return end;
}

bool Channel::send_pending() {
    while (true) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
        if (size < 0) return false;
        if (size == 0) break;
        unsent_ += text_of(bytes, static_cast<std::size_t>(size));
    }
    while (!unsent_.empty()) {
        const auto sent = connection_.send(unsent_);
        if (!sent) return false;
        if (*sent == 0) break;
        was_sent_ = true;
        unsent_.erase(0, *sent);
    }
    return true;
}

bool Channel::receive_pending() {
    while (true) {
        const auto size = connection_.receive(buffer_);
        if (!size) return false;
        if (*size == 0) return true;
        if (nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(buffer_.data()), *size) < 0)
            return false;
        // Bytes that are still on their way are read before the next call.
        if (end_) return true;
    }
}

void Channel::break_off(std::string_view why) {
    is_broken_ = true;
    if (!end_) end_ = CallEnd{was_sent_ ? CallEnd::How::in_doubt : CallEnd::How::not_sent, 0, std::string(why)};
}

CallEnd Channel::end_of_stream(std::uint32_t error_code) const {
    using How = CallEnd::How;
    if (grpc_status_) return {How::answered, *grpc_status_, grpc_text_};
    if (error_code == NGHTTP2_REFUSED_STREAM) return {How::refused, 0, "it takes no more calls on this connection"};
    if (!http_status_.empty() && http_status_ != "200") return {How::in_doubt, 0, "HTTP status " + http_status_};
    return {How::in_doubt, 0, std::string("its answer was cut off: ") + nghttp2_http2_strerror(error_code)};
}

}  // namespace holdfast::stores::etcd
