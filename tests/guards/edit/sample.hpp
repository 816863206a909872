#pragma once

// The sample application as its users start it, and the browser of one of them.
#include "cli/sandbox.hpp"
#include "server/daemon.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

inline constexpr auto patience = 60s;

/// Stale after a second, so that a take-over can be tested; everything else as in production.
inline constexpr auto policies = R"(
[[policy]]
match = "project/*/edit"
ttl = "30m"
longest_hold = "2h"
renew_interval = "500ms"
stale_after = "1s"
may_wait = false
unless_held = ["project/*/propagation"]
[[policy]]
match = "project/*/propagation"
ttl = "60s"
longest_hold = "5m"
renew = false
may_wait = false
)";

inline std::uint16_t port_in(const std::filesystem::path& file) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::uint16_t port = 0;
    while (!(std::ifstream(file) >> port)) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("nothing listens: " + file.string());
        std::this_thread::sleep_for(5ms);
    }
    return port;
}

/// One for all tests of this program: each works on a project or with a lease of its own, and cleans up.
class Sample {
public:
    Sample() {
        box_.write(box_.work / "policies.toml", policies);
        box_.write(box_.work / "web" / "index.html", "<!doctype html><title>sample</title>");
        box_.write(box_.work / "secret.js", "secret");
        running_.emplace(box_.start_program({START_SCRIPT, (box_.work / "sample").string(),
                                             (box_.work / "policies.toml").string(), "--propagation-ms", "60000"},
                                            {{"HOLDFAST_BIN", HOLDFAST_PROGRAM},
                                             {"COCKPIT_BIN", COCKPIT_PROGRAM},
                                             {"COCKPIT_WEB", (box_.work / "web").string()}}));
        port_ = port_in(box_.work / "sample" / "cockpit.port");
    }

    /// Also after a test that failed: the script ends the two programs, and nobody else does.
    ~Sample() {
        if (running_) (void)end();
    }
    Sample(const Sample&) = delete;
    Sample& operator=(const Sample&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::filesystem::path folder() const { return box_.work / "sample"; }
    [[nodiscard]] cli_test::Ended end() {
        running_->signal(SIGTERM);
        auto ended = running_->wait();
        running_.reset();
        return ended;
    }

private:
    cli_test::Sandbox box_{};
    std::optional<cli_test::Running> running_{};
    std::uint16_t port_ = 0;
};

/// The browser of one user.
class Browser {
public:
    Browser(std::uint16_t port, const std::string& user) : port_(port) {
        const server_test::Answer answer = call("POST", "/api/session", fmt::format(R"({{"user":"{}"}})", user));
        EXPECT_EQ(answer.status, 200) << answer.body;
        const std::string cookie = answer.headers.at("set-cookie");
        EXPECT_THAT(cookie, testing::HasSubstr("HttpOnly; SameSite=Strict"));
        cookie_ = cookie.substr(0, cookie.find(';'));
    }

    [[nodiscard]] server_test::Answer call(const std::string& method, const std::string& target,
                                           const std::string& body = "",
                                           server_test::Client::Headers headers = {}) const {
        headers.emplace("Host", "127.0.0.1:" + std::to_string(port_));
        if (!cookie_.empty()) headers.emplace("Cookie", cookie_);
        return server_test::Client(port_).call(method, target, body, headers);
    }
    [[nodiscard]] server_test::Answer get(const std::string& target) const { return call("GET", target); }

private:
    std::uint16_t port_;
    std::string cookie_{};
};

}  // namespace holdfast::tests
