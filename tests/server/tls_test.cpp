// Goal: with a certificate the daemon speaks TLS and nothing else.
#include "server/daemon.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server_test {
namespace {

class Tls : public testing::Test {
protected:
    Tls() {
        const auto made = box.run_program({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                           "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                                           "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert});
        EXPECT_EQ(made.status, 0) << made.err;
    }

    [[nodiscard]] cli_test::Ended curl(const Daemon& daemon, const std::string& path, cli_test::Args more = {}) {
        cli_test::Args all{"/usr/bin/curl",
                           "-s",
                           "--cacert",
                           cert,
                           "--max-time",
                           "30",
                           fmt::format("https://127.0.0.1:{}{}", daemon.port(), path)};
        all.insert(all.end(), more.begin(), more.end());
        return box.run_program(all);
    }

    cli_test::Sandbox box{};
    const std::string cert = box.root / "cert.pem";
    const std::string key = box.root / "key.pem";
};

TEST_F(Tls, RequestsWaitsAndStreamsWork) {
    const Daemon daemon({"--tls-cert", cert, "--tls-key", key});
    const auto grant = curl(daemon, "/v1/acquire", {"-d", R"({"name":"a","ttl_ms":60000})"});
    EXPECT_EQ(grant.status, 0);
    EXPECT_EQ(grant.json().text("/state"), "held") << grant.out;
    EXPECT_EQ(curl(daemon, "/v1/acquire", {"-d", R"({"name":"a","wait_ms":200})"}).json().text("/error/code"),
              "E_LOCK_CONFLICT");
    const auto stream = curl(daemon, "/v1/events", {"-N", "-H", "Accept: text/event-stream", "--max-time", "3"});
    EXPECT_EQ(stream.status, 28) << "it goes on until the client ends it";
    EXPECT_THAT(stream.out, testing::HasSubstr("event: acquired"));
    EXPECT_THAT(stream.out, testing::HasSubstr("event: ready"));
}

TEST_F(Tls, WhoSpeaksPlainTextIsCutAndOthersGoOn) {
    const Daemon daemon({"--tls-cert", cert, "--tls-key", key});
    EXPECT_EQ(daemon.get("/healthz").status, 0);
    EXPECT_EQ(curl(daemon, "/healthz").out, R"({"alive":true})");
    EXPECT_NE(curl(daemon, "/healthz", {"--tls-max", "1.1"}).status, 0) << "TLS 1.2 at least";
}

TEST_F(Tls, ACertificateThatCannotBeUsedIsSaid) {
    box.write(box.root / "bad.pem", "no certificate");
    for (const auto& args :
         {cli_test::Args{"--tls-cert", "bad.pem", "--tls-key", key},
          cli_test::Args{"--tls-cert", cert, "--tls-key", "/absent"}, cli_test::Args{"--tls-key", key}}) {
        cli_test::Args all{"serve", "--listen", "127.0.0.1:0", "--json"};
        all.insert(all.end(), args.begin(), args.end());
        const auto refused = box.run(all);
        EXPECT_EQ(refused.status, 78) << refused.err;
        EXPECT_EQ(refused.code(), "E_CONFIG");
    }
}

}  // namespace
}  // namespace holdfast::server_test
