// Goal: bytes that are no request, or that two programs could understand in two ways, are answered with 4xx or not at
// all, and harm nobody else.
// Method: known forms, and a corpus of damaged requests from a seed; beside them a client that goes on working.
#include "server/daemon.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace holdfast::server_test {
namespace {

const std::string smuggled = R"({"name":"smuggled"})";
const std::string start = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n";
const std::string second = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 19\r\n\r\n" + smuggled;

/// Each is refused although a lenient reader would find a request, or two, in it.
std::vector<std::string> forms() {
    const std::string length = fmt::format("Content-Length: {}\r\n", smuggled.size());
    const std::string chunked = fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", smuggled.size(), smuggled);
    return {
        start + length + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
        start + "Transfer-Encoding: chunked\r\n" + length + "\r\n" + chunked,
        start + length + length + "\r\n" + smuggled,
        start + length + "Content-Length: 0\r\n\r\n" + smuggled,
        start + "Content-Length: 0\r\n" + length + "\r\n" + second,
        start + "Content-Length: +19\r\n\r\n" + smuggled,
        start + "Content-Length: 19, 19\r\n\r\n" + smuggled,
        start + "Content-Length: 0x13\r\n\r\n" + smuggled,
        start + "Content-Length: -1\r\n\r\n" + smuggled,
        start + "Content-Length: 99999999999999999999\r\n\r\n" + smuggled,
        start + "Content-Length: \r\n\r\n" + smuggled,
        start + "Content-Length : 19\r\n\r\n" + smuggled,
        start + " Content-Length: 19\r\n\r\n" + smuggled,
        start + "X: a\r\n Content-Length: 19\r\n\r\n" + smuggled,
        start + "X: a\r\n\tb\r\n" + length + "\r\n" + smuggled,
        start + "Transfer-Encoding: xchunked\r\n\r\n" + chunked,
        start + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunked,
        start + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked,
        start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
        start + "Transfer-Encoding:\x0b chunked\r\n\r\n" + chunked,
        start + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled + "\r\n0\r\n\r\n",
        start + "Transfer-Encoding: chunked\r\n\r\n-5\r\n" + smuggled + "\r\n0\r\n\r\n",
        start + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + smuggled + "\r\n0\r\n\r\n",
        "POST /v1/acquire HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
        "POST /v1/acquire HTTP/1.1\nHost: localhost\nContent-Length: 19\n\n" + smuggled,
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\nContent-Length: 19\r\n\r\n" + smuggled,
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\rContent-Length: 19\r\n\r\n" + smuggled,
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: 19\r\n\r\n" + smuggled,
        "POST /v1/acquire HTTP/1.1\r\nContent-Length: 19\r\n\r\n" + smuggled,
        "POST /v1/acquire\r\n\r\n",
        "POST  /v1/acquire HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/acquire HTTP/2.0\r\nHost: localhost\r\n\r\n",
        "POST /v1/acquire HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        "POST http://localhost/v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 19\r\n\r\n" + smuggled,
        "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/lock?name=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/lock?name=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/lock?name=a&name=b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "G\x01T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        std::string("GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n", 37),
        "GET / HTTP/1.1\r\nHost: localhost\r\n: empty\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        start + "Expect: a miracle\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n",
        "GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        start + "Content-Length: 2000000\r\n\r\n" + std::string(100'000, ' '),
        start + "Content-Length: 3\r\n\r\n\xff\xfe\xfd",
        start + "Content-Length: 2\r\n\r\n[]",
    };
}

/// The first answer, if one comes before the daemon closes or the client has nothing more to say.
int status_of(const Daemon& daemon, const std::string& bytes) {
    Client client = daemon.client();
    client.send_raw(bytes);
    client.end_output();
    return client.read_answer().status;
}

class Malformed : public testing::Test {
protected:
    void expect_harmless() const {
        EXPECT_EQ(daemon.get("/v1/locks?all=1").body, R"({"locks":[],"more":false})");
        EXPECT_EQ(other.call("GET", "/healthz").status, 200) << "another client goes on";
    }

    Daemon daemon{{"--read-timeout", "1s"}};
    mutable Client other = daemon.client();
};

TEST_F(Malformed, EveryKnownFormIsRefusedOrClosedAndTakesNoLock) {
    for (const std::string& form : forms()) {
        const int status = status_of(daemon, form);
        EXPECT_TRUE(status == 0 || (status >= 400 && status < 500)) << status << "\n" << form.substr(0, 300);
        expect_harmless();
    }
}

/// Requests in order, which damage cannot turn into one that takes a lock.
std::vector<std::string> sound_requests() {
    const std::string body = R"({"name":x)";
    return {start + "Content-Length: 9\r\n\r\n" + body,
            start + "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"na\r\n5;a=b\r\nme\":x\r\n0\r\nX: y\r\n\r\n",
            "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n" + body,
            "GET /v1/locks?prefix=a%2fb&limit=3&all=1 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
            "GET /v1/check?name=a HTTP/1.1\r\nHost: localhost\r\nHoldfast-Token: 1\r\nConnection: close\r\n\r\n",
            "GET /v1/history HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nCookie: a=b; c\r\n\r\n"};
}

std::string damaged(std::string bytes, std::mt19937_64& random) {
    for (std::uint64_t damage = 1 + random() % 4; damage > 0; --damage) {
        // An empty one cannot be damaged further.
        if (bytes.empty()) return bytes;
        const std::size_t at = random() % bytes.size();
        switch (random() % 6) {
            case 0: bytes[at] = static_cast<char>(random() % 256); break;
            case 1: bytes.erase(at, 1 + random() % 8); break;
            case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
            case 3: bytes.insert(at, random() % 2000, bytes[at]); break;
            case 4: bytes.resize(at); break;
            default: bytes.insert(at, 1, static_cast<char>(random() % 33)); break;
        }
    }
    return bytes;
}

TEST_F(Malformed, AThousandDamagedRequestsAreAnsweredOrClosedAndHarmNobody) {
    std::mt19937_64 random(tests::seed_of("malformed requests"));
    const std::vector<std::string> sound = sound_requests();
    for (int round = 0; round < tests::scaled(1000); ++round) {
        const std::string bytes = damaged(sound[random() % sound.size()], random);
        const int status = status_of(daemon, bytes);
        // 100: a client that asks may go on, and did not.
        const bool is_fine = status == 0 || status == 100 || (status >= 400 && status < 500);
        const bool is_harmless = status == 200 || status == 204;  // What is left is a request that changes nothing.
        EXPECT_TRUE(is_fine || is_harmless) << status << "\n" << bytes;
    }
    expect_harmless();
}

TEST_F(Malformed, AClientThatSendsSlowlyIsCutAndOthersAreServed) {
    Client slow = daemon.client();
    slow.send_raw("GET /healthz HTT");
    expect_harmless();
    EXPECT_TRUE(slow.is_closed());
    Client halfway = daemon.client();
    halfway.send_raw(start + "Content-Length: 19\r\n\r\n{");
    expect_harmless();
    EXPECT_TRUE(halfway.is_closed());
}

TEST_F(Malformed, RequestsOnOneConnectionAreAnsweredInTheirOrder) {
    Client client = daemon.client();
    client.send_raw(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/store HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.read_answer().body, R"({"alive":true})");
    EXPECT_TRUE(client.read_answer().json().has("/grade"));
    EXPECT_EQ(client.read_answer().status, 404);
}

TEST(Limits, AreWhatTheFlagsSay) {
    const Daemon daemon({"--max-body", "100", "--max-header", "200", "--max-connections", "3"});
    EXPECT_EQ(daemon.post("/v1/acquire", std::string(101, ' ')).status, 413);
    EXPECT_EQ(daemon.client().call("GET", "/healthz", "", {{"X", std::string(200, 'x')}}).status, 431);
    std::vector<Client> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(daemon.client());
        // Connections that ended before are forgotten a moment later.
        EXPECT_TRUE(cli_test::eventually([&] {
            if (clients.back().call("GET", "/healthz").status == 200) return true;
            clients.pop_back();
            clients.push_back(daemon.client());
            return false;
        }));
    }
    EXPECT_EQ(daemon.get("/healthz").status, 503);
    clients.pop_back();
    EXPECT_TRUE(cli_test::eventually([&] { return daemon.get("/healthz").status == 200; }));
}

TEST(Limits, AChunkOrATrailerThatDoesNotEndIsNotCollected) {
    const Daemon daemon({"--max-header", "2000"});
    const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
    for (const std::string& begun : {chunked + "5;" + std::string(3000, 'x'),
                                     chunked + "0\r\nX: " + std::string(3000, 'x'), chunked + std::string(3000, '0')}) {
        Client client = daemon.client();
        client.send_raw(begun);
        EXPECT_EQ(client.read_answer().status, 431);
        EXPECT_TRUE(client.is_closed());
    }
    Client client = daemon.client();
    client.send_raw(chunked + "8000;" + std::string(1900, 'x') + "\r\n" + std::string(0x8000, ' ') +
                    "\r\n0\r\nX: " + std::string(1900, 'x') + "\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 400) << "a long body has a limit of its own: this one is no document";
}

TEST(Limits, AClientThatTakesNothingOfItsAnswerIsCut) {
    const Daemon daemon({"--write-timeout", "1s"});
    Client deaf(daemon.port(), 4096);
    const std::string question = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::string questions;
    while (questions.size() + question.size() < 60'000) questions += question;
    deaf.send_raw(questions);
    EXPECT_TRUE(
        cli_test::eventually([&] { return daemon.get("/metrics").body.contains("\nholdfast_connections 1\n"); }));
}

TEST(Limits, ABatchMayHaveSoManyRequestsAndNoMore) {
    const Daemon daemon({"--max-batch", "2"});
    const auto status_of = [&](const std::string& items) {
        return daemon.post("/v1/batch", R"({"requests":[)" + items + "]}").status;
    };
    const std::string one = R"({"op":"acquire","name":"a"})";
    EXPECT_EQ(status_of(one + "," + one), 200);
    EXPECT_EQ(status_of(one + "," + one + "," + one), 400);
}

}  // namespace
}  // namespace holdfast::server_test
