#pragma once

#include "stores/redis/connection.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::stores::redis {

/// The announcements that have arrived.
struct Announced {
    bool may_have_missed = false;  ///< There was no connection for a while, so announcements may have been lost.
    std::vector<std::string> channels{};
};

/// Subscriptions to channels, all on one connection, which is open while there are channels and the server can be
/// reached. Announcements are only hints: without a connection they are lost. For one thread at a time.
class PubSub {
public:
    explicit PubSub(Address address);

    /// Returns when the server has confirmed the subscriptions, so later announcements are received. If the server
    /// cannot be reached, `wait` tries again.
    void subscribe(const std::vector<std::string>& channels);
    /// After the last channel it returns when no more messages can arrive, because nobody would read them.
    void unsubscribe(const std::vector<std::string>& channels);

    /// Waits until something was announced, `most` is over, or `wake` can be read.
    [[nodiscard]] Announced wait(std::chrono::milliseconds most, int wake);

private:
    using Milliseconds = std::chrono::milliseconds;

    void connect();
    [[nodiscard]] bool send(std::string_view verb, const std::vector<std::string>& channels);
    [[nodiscard]] bool confirm();
    [[nodiscard]] bool receive();
    [[nodiscard]] Milliseconds rest_left() const;
    void disconnect();

    const Address address_;
    std::set<std::string> channels_{};
    std::unique_ptr<Connection> connection_{};
    std::size_t unconfirmed_ =
        0;                   ///< The number of answers to (UN)SUBSCRIBE that have not arrived, one for each channel.
    Announced announced_{};  ///< Not returned yet.
    Deadline rests_until_{Boottime::min()};
};

}  // namespace holdfast::stores::redis
