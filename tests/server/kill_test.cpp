// Goal: a daemon that is killed under load loses no lease and no event, and gives no lock to two. So does a second
// daemon on the same store.
// Method: clients that choose their leases themselves take, renew and give back a few locks over and over, and repeat
// whatever is not answered; a reader follows the events and comes back with its last id; the daemon is killed and
// started again under them.
#include "holdfast/lease.hpp"
#include "server/stream.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace holdfast::server_test {
namespace {

/// Who is inside, as the clients themselves know it.
class Inside {
public:
    void enter(const std::string& name) {
        const std::scoped_lock lock(mutex_);
        EXPECT_TRUE(names_.insert(name).second) << name << " was granted twice";
        ++grants_;
    }
    void leave(const std::string& name) {
        const std::scoped_lock lock(mutex_);
        names_.erase(name);
    }
    [[nodiscard]] int grants() {
        const std::scoped_lock lock(mutex_);
        return grants_;
    }

private:
    std::mutex mutex_;
    std::set<std::string> names_{};  ///< Guarded by mutex_.
    int grants_ = 0;                 ///< Guarded by mutex_.
};

/// Repeats a request until it is answered with something that says what became of it.
Answer call_until_answered(std::uint16_t port, std::string_view target, const std::string& body) {
    while (true) {
        Client client(port);
        Answer answer = client.call("POST", target, body);
        if (answer.status != 0 && answer.status != 503 && answer.status != 504) return answer;
        cli_test::moment();
    }
}

void take_and_give_back(std::uint16_t port, const std::string& name, const std::atomic<bool>& is_over, Inside& inside) {
    while (!is_over) {
        const std::string lease = Credentials::random().reveal();
        const std::string body = fmt::format(R"({{"name":"{}","lease":"{}","ttl_ms":600000}})", name, lease);
        const std::string proof = fmt::format(R"({{"name":"{}","lease":"{}"}})", name, lease);
        const Answer taken = call_until_answered(port, "/v1/acquire", body);
        if (taken.status == 423) continue;
        EXPECT_EQ(taken.status, 200) << taken.body;
        if (taken.status != 200) return;
        inside.enter(name);
        const Answer renewed = call_until_answered(port, "/v1/renew", proof);
        EXPECT_EQ(renewed.status, 200) << "a lease was lost: " << renewed.body;
        inside.leave(name);
        // The repeat of a release whose answer was lost may find another holder.
        EXPECT_THAT(call_until_answered(port, "/v1/release", proof).status, testing::AnyOf(200, 404));
    }
}

using Sequences = std::map<std::string, std::int64_t>;

/// Follows the events and comes back, until those of the lock `end` and all of `expected` have come. There is no order
/// between locks. The newest seq of each.
Sequences follow(std::uint16_t port, const std::function<Sequences()>& expected) {
    Sequences last;
    const auto is_complete = [&] {
        for (const auto& [name, seq] : expected())
            if (last[name] < seq) return false;
        return true;
    };
    std::string id;
    while (true) {
        Stream stream(port, "", id);
        while (const auto event = stream.next_event()) {
            const auto document = event->json();
            const std::string name = document.text("/name");
            const std::int64_t seq = document.number("/seq");
            if (seq <= last[name]) continue;
            EXPECT_EQ(seq, last[name] + 1) << "an event of " << name << " is missing";
            last[name] = seq;
            if (last.contains("end") && is_complete()) return last;
        }
        if (!stream.last_id().empty()) id = stream.last_id();
        cli_test::moment();
    }
}

/// Everybody goes on.
void await_grants(Inside& inside) {
    const int so_far = inside.grants();
    EXPECT_TRUE(cli_test::eventually([&] { return inside.grants() > so_far + 10; })) << "nobody goes on";
}

void work_under(Daemon& daemon, const std::vector<std::uint16_t>& ports,
                const std::function<void(Inside& inside)>& harm) {
    std::atomic<bool> is_over = false;
    Inside inside;
    Sequences seen;
    Sequences there;
    {
        // Written before the event that lets the reader look at it.
        std::jthread reader([&] { seen = follow(ports.back(), [&] { return there; }); });
        {
            std::vector<std::jthread> clients;
            for (std::size_t i = 0; i < 6; ++i)
                clients.emplace_back([&, i] {
                    take_and_give_back(ports[i % ports.size()], fmt::format("lock-{}", i % 2), is_over, inside);
                });
            harm(inside);
            await_grants(inside);
            is_over = true;
        }
        for (const char* name : {"lock-0", "lock-1"})
            there[name] = daemon.get(fmt::format("/v1/lock?name={}", name)).json().number("/seq");
        EXPECT_EQ(daemon.post("/v1/acquire", R"({"name":"end"})").status, 200);
    }
    for (const auto& [name, seq] : there) EXPECT_EQ(seen[name], seq) << name;
}

void kill_again_and_again(const std::string& store, int times) {
    Daemon daemon({}, store);
    work_under(daemon, {daemon.port()}, [&](Inside& inside) {
        for (int kill = 0; kill < times; ++kill) {
            await_grants(inside);
            daemon.kill_and_restart();
            EXPECT_TRUE(cli_test::eventually([&] { return daemon.get("/readyz").status == 200; }));
        }
    });
}

class Kill : public testing::TestWithParam<std::string> {};

TEST_P(Kill, NoLeaseAndNoEventIsLostAndNoLockIsGivenToTwo) { kill_again_and_again(GetParam(), tests::scaled(4)); }

TEST(KillBeforePostgres, NoLeaseAndNoEventIsLostAndNoLockIsGivenToTwo) {
    const tests::ServerPlace place("postgres", tests::shared_server_port("postgres"));
    kill_again_and_again(place.url(), tests::scaled(4));
}

INSTANTIATE_TEST_SUITE_P(Stores, Kill, testing::ValuesIn(cli_test::stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

TEST(TwoDaemons, OnOnePostgresServeOneLockSpace) {
    const tests::ServerPlace place("postgres", tests::shared_server_port("postgres"));
    const std::string url = place.url();
    Daemon one({}, url);
    Daemon other({}, url);
    work_under(one, {one.port(), other.port()}, [&](Inside& inside) {
        await_grants(inside);
        one.kill_and_restart();
        EXPECT_TRUE(cli_test::eventually([&] { return one.get("/readyz").status == 200; }));
    });
    const Answer grant = one.post("/v1/acquire", R"({"name":"a","holder":"h","ttl_ms":60000})");
    ASSERT_EQ(grant.status, 200);
    Client waiter = other.client();
    waiter.send_request("POST", "/v1/acquire", R"({"name":"a","ttl_ms":60000,"wait_ms":60000})");
    EXPECT_TRUE(cli_test::eventually([&] { return one.get("/v1/lock?name=a").json().number("/waiters") == 1; }));
    EXPECT_EQ(
        one.post("/v1/release", fmt::format(R"({{"name":"a","lease":"{}"}})", grant.json().text("/lease"))).status,
        200);
    EXPECT_EQ(waiter.read_answer().status, 200) << "the other daemon hears of the release";
}

}  // namespace
}  // namespace holdfast::server_test
