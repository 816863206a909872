#pragma once

#include "server/daemon.hpp"

#include <optional>
#include <string>

namespace holdfast::server_test {

/// One message of an event stream.
struct Message {
    std::string id{};
    std::string kind{};
    std::string data{};

    [[nodiscard]] cli_test::Document json() const;
};

/// A reader of `GET /v1/events`, as a browser's EventSource reads it.
class Stream {
public:
    /// `since`: empty for the oldest event that is kept.
    explicit Stream(const Daemon& daemon, const std::string& query = "", const std::string& last_id = "")
        : Stream(daemon.port(), query, last_id) {}
    Stream(std::uint16_t port, const std::string& query, const std::string& last_id, Client::Headers headers = {})
        : Stream(Client(port), query, last_id, std::move(headers)) {}
    Stream(Client client, const std::string& query, const std::string& last_id, Client::Headers headers = {});

    [[nodiscard]] const Answer& head() const { return head_; }
    /// The next message that is not a comment. Absent at the end.
    [[nodiscard]] std::optional<Message> next();
    /// The next that is an event of a lock.
    [[nodiscard]] std::optional<Message> next_event();
    /// Of the last message that had one.
    [[nodiscard]] const std::string& last_id() const { return last_id_; }
    /// Reads until the stream is up to date.
    void skip_to_ready();

private:
    Client client_;
    Answer head_{};
    std::string text_{};
    std::string last_id_{};
};

}  // namespace holdfast::server_test
