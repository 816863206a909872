#pragma once

#include "stores/etcd/wire/connection.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct nghttp2_session;

namespace holdfast::stores::etcd {

/// One call of a method. The views must outlive the call.
struct Call {
    std::string_view method;  ///< As a path.
    std::string_view token;   ///< The user's token; may be empty.
    std::string_view message{};
    bool is_stream = false;  ///< A stream: it has no message here, `Channel::send` adds messages.
};

/// How a call ended.
struct CallEnd {
    enum class How {
        answered,
        refused,   ///< The node answered, and did nothing.
        not_sent,  ///< Nothing of the call has left.
        in_doubt,  ///< The call may have been carried out.
    };
    How how = How::in_doubt;
    int status = 0;      ///< The gRPC status, if the call was answered; 0: success.
    std::string text{};  ///< The text of that status, or of the failure.
};

/// gRPC with one node: calls one after the other on one HTTP/2 connection. For one thread at a time.
class Channel {
public:
    /// Or an error text; then nothing was sent.
    [[nodiscard]] static std::expected<std::unique_ptr<Channel>, std::string> open(const Endpoint& endpoint,
                                                                                   const std::string& ca_file,
                                                                                   std::chrono::milliseconds timeout);
    Channel(Connection connection, const Endpoint& endpoint);
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    ~Channel();

    /// Whether another call can be made: the node may have closed the connection while it was not used.
    [[nodiscard]] bool is_open();

    /// Begins a call. The one before it is over or was cancelled.
    void begin(const Call& call);
    /// Adds a message to a stream. It is sent by the next `advance`.
    void send(std::string_view message);
    /// Sends and receives until the call is over, or a message has come, or `time` is over, or `wake` can be read.
    void advance(std::chrono::milliseconds time, int wake = -1);
    /// The next message of the answer, if all of it is there.
    [[nodiscard]] std::optional<std::string> take_message();
    /// Absent while the call goes on.
    [[nodiscard]] const std::optional<CallEnd>& end() const { return end_; }
    /// Cancels the call. The connection stays.
    void cancel();

    /// A whole call with one answer, which is in `message` if there was one.
    [[nodiscard]] CallEnd call(const Call& call, std::chrono::milliseconds timeout, std::string& message);

private:
    struct Callbacks;
    struct SessionDeleter {
        void operator()(nghttp2_session* session) const;
    };

    /// False if the connection is broken.
    [[nodiscard]] bool send_pending();
    [[nodiscard]] bool receive_pending();
    void break_off(std::string_view why);
    [[nodiscard]] CallEnd end_of_stream(std::uint32_t error_code) const;

    Connection connection_;
    const std::string authority_;
    const std::string scheme_;
    std::unique_ptr<nghttp2_session, SessionDeleter> session_{};
    std::string unsent_{};  ///< Bytes that were already taken from the nghttp2 session.
    std::array<char, 16'384> buffer_{};
    bool is_broken_ = false;

    // Of the last call.
    std::int32_t stream_ = -1;
    std::string request_{};
    std::size_t handed_over_ = 0;  ///< Of the request.
    bool is_stream_ = false;
    bool was_sent_ = false;
    std::string received_{};
    std::string http_status_{};
    std::optional<int> grpc_status_{};
    std::string grpc_text_{};
    std::optional<CallEnd> end_{};
};

}  // namespace holdfast::stores::etcd
