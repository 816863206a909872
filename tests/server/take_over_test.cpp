// A stale lease is taken over through the daemon when the policy of its lock says so, and never before.
#include "server/daemon.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace holdfast::server_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class TakeOver : public testing::Test {
protected:
    /// Of a holder that is never heard of again.
    cli_test::Document lease_of(const std::string& name) const {
        const Answer granted =
            daemon.post("/v1/acquire", fmt::format(R"({{"name":"{}","ttl_ms":600000,"holder":"gone"}})", name));
        EXPECT_EQ(granted.status, 200) << granted.body;
        return granted.json();
    }
    [[nodiscard]] Answer take_over(const cli_test::Document& seen, const std::string& more = "") const {
        return daemon.post(
            "/v1/acquire",
            fmt::format(R"({{"name":"{}","holder":"next","take_over":{{"lock_id":"{}","renew_seq":{}{}}}}})",
                        seen.text("/name"), seen.text("/lock_id"), seen.text("/renew_seq"), more));
    }

    tests::TempFolder folder{};
    Daemon daemon{{"--config", configured()}};

private:
    std::string configured() const {
        const auto path = folder.path() / "holdfast.toml";
        std::ofstream(path) << "[[policy]]\nmatch = \"soon/*\"\nstale_after = \"500ms\"\n"
                               "[[policy]]\nmatch = \"late/*\"\nstale_after = \"1h\"\n";
        return path.string();
    }
};

TEST_F(TakeOver, IsGrantedWhenThePolicySaysThatTheLeaseIsStale) {
    const auto gone = lease_of("soon/a");
    Answer answer = take_over(gone);
    for (const auto end = std::chrono::steady_clock::now() + 60s;
         answer.status == 423 && std::chrono::steady_clock::now() < end; answer = take_over(gone))
        std::this_thread::sleep_for(20ms);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json().text("/stolen_from/lock_id"), gone.text("/lock_id"));
    EXPECT_EQ(daemon.post("/v1/renew", fmt::format(R"({{"name":"soon/a","lease":"{}"}})", gone.text("/lease"))).status,
              404);
}

TEST_F(TakeOver, IsRefusedBeforeThatWhateverTheClientSays) {
    const auto there = lease_of("late/a");
    const Answer refused = take_over(there, R"(,"stale_after_ms":50)");
    EXPECT_EQ(refused.status, 423);
    EXPECT_EQ(refused.json().text("/error/holder/holder"), "gone");
    EXPECT_GT(refused.json().number("/error/retry_after_ms"), 60'000);
}

TEST_F(TakeOver, IsDeniedWhereNoPolicySaysWhenALeaseIsStale) {
    const Answer refused = take_over(lease_of("other"), R"(,"stale_after_ms":50)");
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(refused.code(), "E_DENIED");
    EXPECT_THAT(refused.json().text("/error/hint"), HasSubstr("override"));
}

TEST_F(TakeOver, ThatNamesNoLeaseOrWaitsIsRefused) {
    const auto there = lease_of("soon/b");
    const Answer unnamed = daemon.post("/v1/acquire", R"({"name":"soon/b","holder":"x","take_over":{"renew_seq":0}})");
    EXPECT_EQ(unnamed.status, 400);
    EXPECT_THAT(unnamed.json().text("/error/message"), HasSubstr("take_over.lock_id"));
    EXPECT_EQ(take_over(there, R"(,"surprise":1)").status, 400);
}

}  // namespace
}  // namespace holdfast::server_test
