// Goal: the store works in a node of a Redis Cluster, where all keys of a script must belong to one slot, and changes
// nothing where the cluster does not let it. Method: a cluster of one node, whose slots the test gives and takes.
#include "stores/redis_fixture.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class RedisCluster : public testing::Test {
protected:
    RedisCluster() { server_.ask({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}); }
    void SetUp() override {
        await("cluster_state:ok");
        store_ = must(redis_.open());
    }
    void await(const std::string& state) {
        const Deadline end = soon();
        while (server_.ask({"CLUSTER", "INFO"}).find(state) == std::string::npos && !end.passed(host_clock())) {
        }
    }
    /// Where all keys of the store are.
    [[nodiscard]] std::string slot() { return server_.ask({"CLUSTER", "KEYSLOT", "holdfast"}); }

    // A port for the nodes among themselves: by default it is ten thousand higher, which is more than there are.
    const OwnRedis redis_{{"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())}};
    RedisByHand server_ = redis_.by_hand();
    std::unique_ptr<Store> store_{};
};

TEST_F(RedisCluster, AllKeysOfAStoreAreInOneSlotWhateverTheLocksAreCalled) {
    std::vector<Request> batch;
    for (const std::string& name : {std::string("a"), std::string("b"), std::string("{c}"), std::string("{holdfast}"),
                                    std::string("}{"), std::string("{}")})
        batch.push_back(by_alice(lock(name), 1h));
    EXPECT_THAT(must(store_->apply(batch, soon())), testing::Each(Granted()));
    Acquire excluded = by_bob(lock("d"));
    excluded.unless_held = {lock("a"), lock("{c}")};
    EXPECT_THAT(store_->apply_one(excluded, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store_->apply_one(queued(by_bob(lock("a"))), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(store_->list({}, soon())).size(), batch.size());
    EXPECT_EQ(must(store_->history({}, soon())).size(), batch.size());
    EXPECT_EQ(server_.ask({"CLUSTER", "COUNTKEYSINSLOT", slot()}), server_.ask({"DBSIZE"}));
    EXPECT_EQ(store_->info().grade, Grade::b) << "a failover takes the last grants back";
}

TEST_F(RedisCluster, ANodeThatMayNotWriteToTheSlotChangesNothingAndSaysSo) {
    const Acquire alice = by_alice(lock("x"), 1h);
    const LockStatus before = must(store_->apply_one(alice, soon())).lock;
    server_.ask({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
    server_.ask({"CLUSTER", "DELSLOTS", slot()});
    EXPECT_THAT(store_->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store_->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store_->inspect(lock("x"), soon()), RefusedWith(Errc::store_unavailable));
    server_.ask({"CLUSTER", "ADDSLOTS", slot()});
    await("cluster_state:ok");
    const LockStatus after = must(store_->inspect(lock("x"), soon()));
    EXPECT_EQ(after.seq, before.seq);
    EXPECT_EQ(after.lease, before.lease);
    EXPECT_THAT(store_->apply_one(renewal(alice), soon()), Granted());
    expect_sound(*store_, lock("x"));
}

// Three masters, each with a third of the slots. What is asked of the wrong node is redirected (MOVED).
TEST(RedisClusterOfThree, OnlyTheNodeWithTheSlotOfTheStoreWorksAndTheOthersSaySo) {
    struct Node {
        std::string port_among_nodes = std::to_string(free_port());
        OwnRedis redis{{"--cluster-enabled", "yes", "--cluster-port", port_among_nodes}};
        RedisByHand server = redis.by_hand();
    };
    std::array<Node, 3> nodes;
    const std::array<std::array<const char*, 2>, 3> slots{{{"0", "5460"}, {"5461", "10922"}, {"10923", "16383"}}};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].server.ask({"CLUSTER", "ADDSLOTSRANGE", slots[i][0], slots[i][1]});
        if (i > 0)
            nodes[0].server.ask(
                {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes[i].redis.port()), nodes[i].port_among_nodes});
    }
    const Deadline end = within(60s);
    for (Node& node : nodes)
        while (node.server.ask({"CLUSTER", "INFO"}).find("cluster_known_nodes:3") == std::string::npos ||
               node.server.ask({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos)
            ASSERT_FALSE(end.passed(host_clock()));

    // The hash of a prefix says which node has its store: there are prefixes for each of them.
    std::set<std::size_t> used;
    for (int number = 0; number < 32 && used.size() < nodes.size(); ++number) {
        const std::string prefix = "p" + std::to_string(number);
        const int slot = std::stoi(nodes[0].server.ask({"CLUSTER", "KEYSLOT", prefix}));
        const std::size_t home = slot <= 5460 ? 0 : slot <= 10922 ? 1 : 2;
        if (!used.insert(home).second) continue;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            SCOPED_TRACE(prefix + " on node " + std::to_string(i));
            const auto store = nodes[i].redis.open("?prefix=" + prefix);
            if (i == home) {
                ASSERT_THAT(store, Granted());
                EXPECT_THAT((*store)->apply_one(by_alice(lock("x"), 1h), soon()), Granted());
                continue;
            }
            // Whether it is found out when the store is opened or used, the words are the same.
            const auto refused =
                store ? (*store)->apply_one(by_bob(lock("x")), soon()) : std::unexpected(store.error());
            ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
            EXPECT_THAT(refused.error().message, testing::HasSubstr("is not the node of its cluster that has"));
        }
    }
    EXPECT_EQ(used.size(), nodes.size());
}

// A master that was told to stop while it has no followers refuses before it writes anything.
TEST(RedisFollowers, TooFewOfThemMeanThatNothingIsChanged) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::store_unavailable));
    server.ask({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 1U);
    EXPECT_EQ(must(store->inspect(lock("y"), soon())).seq, 0U);
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
