// Goal: a reader that comes back with its last id has every event of every lock, in the order of that lock.
// Method: real streams of a real daemon, cut at every point, also by killing the daemon.
#include "server/stream.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace holdfast::server_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class Events : public testing::TestWithParam<std::string> {
protected:
    /// Three events: acquired, renewed, released.
    void use(const std::string& name) const {
        const auto grant = daemon.post("/v1/acquire", fmt::format(R"({{"name":"{}","ttl_ms":60000}})", name)).json();
        const std::string body = fmt::format(R"({{"name":"{}","lease":"{}"}})", name, grant.text("/lease"));
        EXPECT_EQ(daemon.post("/v1/renew", body).status, 200);
        EXPECT_EQ(daemon.post("/v1/release", body).status, 200);
    }

    static std::vector<std::string> kinds(Stream& stream, std::size_t count) {
        std::vector<std::string> all;
        while (all.size() < count) {
            const auto event = stream.next_event();
            if (!event) return all;
            all.push_back(event->kind);
        }
        return all;
    }

    Daemon daemon{{}, GetParam()};
};

TEST_P(Events, AStreamFromTheBeginningHasWhatWasAndGoesOnWithWhatComes) {
    use("a");
    Stream stream(daemon);
    EXPECT_EQ(stream.head().headers.at("content-type"), "text/event-stream");
    EXPECT_EQ(stream.head().headers.at("x-accel-buffering"), "no");
    EXPECT_THAT(kinds(stream, 3), ElementsAre("acquired", "renewed", "released"));
    stream.skip_to_ready();
    use("b");
    EXPECT_THAT(kinds(stream, 3), ElementsAre("acquired", "renewed", "released"));
}

TEST_P(Events, AStreamFromTheEndHasOnlyWhatComes) {
    use("old");
    Stream stream(daemon, "?since=end");
    stream.skip_to_ready();
    use("new");
    const auto event = stream.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->json().text("/name"), "new");
    EXPECT_EQ(event->json().number("/seq"), 1);
}

TEST_P(Events, APrefixLeavesOutTheOtherLocks) {
    Stream stream(daemon, "?since=end&prefix=web/");
    stream.skip_to_ready();
    use("job/a");
    use("web/a");
    const auto event = stream.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->json().text("/name"), "web/a");
}

TEST_P(Events, AReaderThatResumesAfterEachEventMissesNothingAlsoWhenTheDaemonWasKilled) {
    for (int i = 0; i < 4; ++i) use(fmt::format("lock-{}", i % 2));
    std::map<std::string, std::int64_t> last;
    std::string id;
    for (int cut = 0; cut < 14; ++cut) {
        if (cut == 7) daemon.kill_and_restart();
        Stream stream(daemon, "", id);
        // Repetitions are allowed after a resume, and dropped by (name, seq).
        while (const auto event = stream.next_event()) {
            const auto document = event->json();
            const std::string name = document.text("/name");
            const std::int64_t seq = document.number("/seq");
            const bool is_new = seq > last[name];
            if (is_new) {
                EXPECT_EQ(seq, last[name] + 1) << name;
                last[name] = seq;
            }
            if (is_new || last["lock-0"] + last["lock-1"] == 12) break;
        }
        id = stream.last_id();
        if (last["lock-0"] + last["lock-1"] == 12) break;
    }
    EXPECT_EQ(last["lock-0"], 6);
    EXPECT_EQ(last["lock-1"], 6);
}

TEST_P(Events, AnotherProcessOnTheStoreIsSeen) {
    Stream stream(daemon, "?since=end");
    stream.skip_to_ready();
    ASSERT_EQ(daemon.box.run({"acquire", "by-hand", "--store", GetParam()}).status, 0);
    const auto event = stream.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->json().text("/name"), "by-hand");
}

TEST_P(Events, APrunedRangeIsAGapForAReaderThatComesBack) {
    use("a");
    std::string id;
    {
        Stream stream(daemon);
        ASSERT_TRUE(stream.next_event());
        id = stream.last_id();
    }
    ASSERT_EQ(daemon.box.run({"prune", "--keep", "0", "--store", GetParam()}).status, 0);
    Stream stream(daemon, "", id);
    bool saw_gap = false;
    while (const auto message = stream.next()) {
        if (message->kind == "gap") {
            saw_gap = true;
            EXPECT_EQ(message->json().text("/name"), "a");
            EXPECT_EQ(message->json().number("/through_seq"), 2) << "the newest event stays";
        }
        if (message->kind == "ready") break;
    }
    EXPECT_TRUE(saw_gap);
}

TEST_P(Events, PagesOfJsonCoverTheSame) {
    use("a");
    use("b");
    std::string cursor;
    std::set<std::pair<std::string, std::int64_t>> seen;
    for (int pages = 0; pages < 100; ++pages) {
        std::string query = "?limit=2&since=";
        for (const char c : cursor) query += fmt::format("%{:02x}", static_cast<unsigned char>(c));
        const auto page = daemon.get("/v1/events" + query).json();
        for (std::size_t i = 0; i < page.size("/events"); ++i)
            seen.emplace(page.text(fmt::format("/events/{}/name", i)), page.number(fmt::format("/events/{}/seq", i)));
        cursor = page.text("/cursor");
        if (page.yes("/is_last")) break;
    }
    EXPECT_EQ(seen.size(), 6U);
    EXPECT_EQ(daemon.get("/v1/events?since=end&limit=0").json().size("/events"), 0U);
    EXPECT_EQ(daemon.get("/v1/events?since=nonsense").status, 400);
    EXPECT_EQ(Stream(daemon, "?since=nonsense").head().status, 400);
}

TEST(SlowReader, IsDroppedAndResumesWhereItStopped) {
    const Daemon daemon({"--max-stream-bytes", "10000"});
    Stream slow(Client(daemon.port(), 4096), "?since=end", "");
    slow.skip_to_ready();
    std::size_t taken = 0;
    const auto take_many = [&] {
        std::string requests;
        for (int i = 0; i < 500; ++i)
            requests += fmt::format(R"({}{{"op":"acquire","name":"lock-{}"}})", i == 0 ? "" : ",", taken++);
        EXPECT_EQ(daemon.post("/v1/batch", R"({"requests":[)" + requests + "]}").status, 200);
    };
    const bool is_dropped = cli_test::eventually([&] {
        if (daemon.log().find("slow_reader") != std::string::npos) return true;
        if (taken < 50'000) take_many();
        return false;
    });
    ASSERT_TRUE(is_dropped);

    std::set<std::string> names;
    while (const auto event = slow.next_event()) names.insert(event->json().text("/name"));
    EXPECT_LT(names.size(), taken);
    Stream again(daemon, "", slow.last_id());
    while (const auto message = again.next()) {
        if (message->kind == "ready") break;
        names.insert(message->json().text("/name"));
    }
    EXPECT_EQ(names.size(), taken);
}

/// More streams than are served in one turn, so a page reaches the last of them after the first has more to read.
TEST(ManyStreams, EachIsGivenEveryEventOnce) {
    constexpr int count = 400;
    constexpr int rounds = 3;
    const Daemon daemon;
    std::vector<Stream> streams;
    for (int i = 0; i < count; ++i) streams.emplace_back(daemon, i % 2 == 0 ? "?since=end" : "?since=end&prefix=a");
    for (Stream& stream : streams) stream.skip_to_ready();
    std::vector<std::string> all;
    std::vector<std::string> with_prefix;
    for (int round = 0; round < rounds; ++round) {
        std::string requests;
        for (const char* const prefix : {"a", "b"}) {
            all.push_back(fmt::format("{}-{}", prefix, round));
            requests += fmt::format(R"({}{{"op":"acquire","name":"{}"}})", requests.empty() ? "" : ",", all.back());
        }
        with_prefix.push_back(fmt::format("a-{}", round));
        EXPECT_EQ(daemon.post("/v1/batch", R"({"requests":[)" + requests + "]}").status, 200);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
        const auto& expected = i % 2 == 0 ? all : with_prefix;
        std::vector<std::string> names;
        while (names.size() < expected.size()) {
            const auto event = streams[i].next_event();
            ASSERT_TRUE(event) << "stream " << i;
            names.push_back(event->json().text("/name"));
        }
        EXPECT_THAT(names, UnorderedElementsAreArray(expected)) << "stream " << i;
    }
}

TEST(StreamOfHttp10, HasNoChunks) {
    const Daemon daemon;
    Client client = daemon.client();
    client.send_raw("GET /v1/events?since=end HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    EXPECT_FALSE(client.read_head().headers.contains("transfer-encoding"));
    // Two messages, and nothing before, between or behind them.
    EXPECT_TRUE(client.read_to("}\n\n").starts_with("id: "));
    EXPECT_EQ(daemon.post("/v1/acquire", R"({"name":"a"})").status, 200);
    const std::string event = client.read_to("}\n\n");
    EXPECT_TRUE(event.starts_with("id: ")) << event;
    EXPECT_THAT(event, HasSubstr("\nevent: acquired\ndata: {"));
    EXPECT_TRUE(client.is_silent_for(std::chrono::milliseconds{0}));
}

INSTANTIATE_TEST_SUITE_P(Stores, Events, testing::ValuesIn(cli_test::stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::server_test
