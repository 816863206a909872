#include "server/stream.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::server_test {

cli_test::Document Message::json() const {
    auto document = cli_test::Document::parse(data);
    EXPECT_TRUE(document) << data;
    return document ? *document : *cli_test::Document::parse("{}");
}

Stream::Stream(Client client, const std::string& query, const std::string& last_id, Client::Headers headers)
    : client_(std::move(client)), last_id_(last_id) {
    headers.emplace("Accept", "text/event-stream");
    if (!last_id.empty()) headers.emplace("Last-Event-ID", last_id);
    client_.send_request("GET", "/v1/events" + query, "", headers);
    head_ = client_.read_head();
}

std::optional<Message> Stream::next() {
    while (true) {
        std::size_t end = 0;
        while ((end = text_.find("\n\n")) == std::string::npos) {
            const std::string chunk = client_.read_chunk();
            if (chunk.empty()) return std::nullopt;
            text_ += chunk;
        }
        Message message;
        std::istringstream lines(text_.substr(0, end));
        text_.erase(0, end + 2);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("id: ")) message.id = last_id_ = line.substr(4);
            if (line.starts_with("event: ")) message.kind = line.substr(7);
            if (line.starts_with("data: ")) message.data = line.substr(6);
        }
        if (!message.data.empty()) return message;
    }
}

std::optional<Message> Stream::next_event() {
    while (auto message = next())
        if (message->kind != "ready" && message->kind != "gap") return message;
    return std::nullopt;
}

void Stream::skip_to_ready() {
    while (const auto message = next())
        if (message->kind == "ready") return;
    ADD_FAILURE() << "the stream ended";
}

}  // namespace holdfast::server_test
