// Goal: a store in a server whose keys were removed by hand is not taken for one that nobody has used. Method: the
// server's own commands, behind the store's back; one host's stores are in tests/cli.
#include "client/verify.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/redis_by_hand.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <latch>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class EmptiedStore : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), 20s); }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(place_.url())); }
    [[nodiscard]] Result<client::Verified> verify() const {
        return client::verify(*open(), std::nullopt, host_clock());
    }

    [[nodiscard]] std::vector<std::string> keys() const {
        return is("redis") ? RedisByHand(port_).keys(name_) : EtcdByHand(port_).keys(name_ + "/");
    }
    void remove(const std::string& key) const {
        if (is("redis"))
            RedisByHand(port_).ask({"DEL", key});
        else
            EtcdByHand(port_).remove_all(key);
    }
    /// In the SQL of the store's server.
    void run(const std::string& sql) const {
        if (is("postgres"))
            ByHand{port_}(sql);
        else
            MysqlByHand(port_, name_).run(sql);
    }
    [[nodiscard]] std::string table(const std::string& name) const {
        return is("postgres") ? name_ + "." + name : "holdfast_" + name;
    }
    /// All but what says whose store it is.
    void empty() const {
        if (is("postgres"))
            for (const char* name : {"locks", "audit"}) run("ALTER TABLE " + table(name) + " DISABLE TRIGGER USER");
        if (has_tables()) {
            for (const char* name : {"locks", "queue", "audit"}) run("TRUNCATE TABLE " + table(name));
            return;
        }
        for (const std::string& key : keys())
            if (key != "{" + name_ + "}:store" && key != name_ + "/meta" && key != name_ + "/used") remove(key);
    }
    /// Also what says whose store it is.
    void remove_everything() const {
        if (is("postgres"))
            run("DROP SCHEMA " + name_ + " CASCADE");
        else if (is("mysql"))
            for (const char* name : {"locks", "queue", "audit", "meta"}) run("DROP TABLE " + table(name));
        else
            for (const std::string& key : keys()) remove(key);
    }
    /// As a version leaves it that knows of no mark.
    void unmark() const {
        if (has_tables())
            run("UPDATE " + table("meta") + " SET used = " + (is("postgres") ? "false" : "0"));
        else if (is("redis"))
            RedisByHand(port_).ask({"HDEL", "{" + name_ + "}:store", "used"});
        else
            remove(name_ + "/used");
    }
    /// They know at every change whether they are marked.
    [[nodiscard]] static bool has_tables() { return is("postgres") || is("mysql"); }

    ~EmptiedStore() override {
        if (is("postgres"))
            run("DROP SCHEMA IF EXISTS " + name_ + " CASCADE");
        else if (is("mysql"))
            run("DROP DATABASE " + name_);
        else
            for (const std::string& key : keys()) remove(key);
    }

private:
    [[nodiscard]] static bool is(std::string_view kind) { return GetParam() == kind; }
    [[nodiscard]] static std::string random_name() {
        std::string name = "emptied_" + LockId::random().text();
        std::ranges::replace(name, '-', '_');
        return name;
    }

    const std::uint16_t port_ = shared_server_port(GetParam());
    const std::string name_ = random_name();
    const ServerPlace place_{GetParam(), port_, name_};
};

TEST_P(EmptiedStore, IsFoundAlthoughNothingIsLeftToVerify) {
    const auto store = open();
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, soon()));
    must(store->apply_one(release(alice), soon()));
    EXPECT_EQ(must(verify()).events, 2U);
    empty();
    EXPECT_THAT(verify(), RefusedWith(Errc::audit_chain_broken));
    must(open()->apply_one(by_bob(lock("y")), soon()));
    EXPECT_EQ(must(verify()).locks, 1U) << "what came afterwards is whole";
}

TEST_P(EmptiedStore, IsNotOneThatWasOnlyCreatedAndLookedAt) {
    EXPECT_EQ(must(verify()).locks, 0U) << "there is none yet";
    const auto store = open();
    must(store->apply({}, soon()));
    EXPECT_FALSE(store->apply_one(release(by_alice(lock("x"))), soon()));
    EXPECT_FALSE(store->apply_one(check(lock("x"), FencingToken{1}), soon()));
    must(store->inspect(lock("x"), soon()));
    EXPECT_FALSE(open()->info().was_used);
    EXPECT_EQ(must(verify()).locks, 0U);
}

// Nobody says of its locks that they are missing, and it learns to know it.
// Long before the lease would run out, or be renewed.
TEST_P(EmptiedStore, IsHeardOfByWhoeverHoldsALockInIt) {
    for (const bool everything : {false, true}) {
        SCOPED_TRACE(everything ? "removed" : "emptied");
        const auto store = open();
        HoldOptions options;
        options.ttl = lasting(1h);
        std::promise<void> lost;
        options.observer = [&](const HoldEvent& event) {
            if (event.kind == HoldEventKind::lost) lost.set_value();
        };
        const Hold held = must(hold(*store, lock("x"), options));
        everything ? remove_everything() : empty();
        ASSERT_EQ(lost.get_future().wait_for(60s), std::future_status::ready);
        EXPECT_EQ(held.loss()->code, Errc::lock_not_held);
        EXPECT_THAT(held.loss()->message, testing::HasSubstr("the store knows nothing of the lease on x"));
    }
}

TEST_P(EmptiedStore, OfAVersionWithoutMarkGetsItWithTheNextNewLock) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(open()->apply_one(alice, soon()));
    unmark();
    must(open()->apply_one(renewal(alice), soon()));
    EXPECT_EQ(open()->info().was_used, has_tables());
    EXPECT_EQ(must(verify()).locks, 1U);
    must(open()->apply_one(by_bob(lock("y")), soon()));
    EXPECT_TRUE(open()->info().was_used);
}

// The object remembers that the store was marked, and must not go by that.
TEST_P(EmptiedStore, ThatLostItsMarkTooHasItAgainAfterTheNextChange) {
    if (!has_tables()) return;  // Marked with new locks of new objects, as above.
    const auto store = open();
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    must(store->apply_one(renewal(alice), soon()));
    unmark();
    must(store->apply_one(renewal(alice), soon()));
    EXPECT_TRUE(open()->info().was_used);
    unmark();
    must(store->apply_one(by_bob(lock("y")), soon()));
    EXPECT_TRUE(open()->info().was_used);
}

TEST_P(EmptiedStore, IsMarkedOnceWhenManyWriteTheFirstLockAtOnce) {
    constexpr std::size_t clients = 6;
    must(open()->apply({}, soon()));
    std::latch start(clients);
    std::vector<Reply> replies(clients, std::unexpected(Error{}));
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < clients; ++i)
            threads.emplace_back([&, i] {
                const auto store = open();
                start.arrive_and_wait();
                replies[i] = store->apply_one(by_bob(lock("x/" + std::to_string(i))), soon());
            });
    }
    EXPECT_THAT(replies, testing::Each(Granted()));
    EXPECT_TRUE(open()->info().was_used);
    EXPECT_EQ(must(verify()).locks, clients);
}

INSTANTIATE_TEST_SUITE_P(Servers, EmptiedStore, testing::ValuesIn(server_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
