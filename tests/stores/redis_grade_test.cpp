// Goal: a store says what its server can promise, refuses what cannot keep a lock, and shows its password to nobody.
// Method: servers with other settings, other certificates and other passwords.
#include "stores/redis_fixture.hpp"
#include "support/servers/certificate.hpp"

namespace holdfast::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

// With snapshots alone every acknowledged grant of the last minutes was gone after a kill, and a server that evicts any
// key evicts locks. Nobody uses such a server without saying so.
TEST(RedisGrade, FollowsFromWhatTheServerKeeps) {
    struct Case {
        std::vector<std::string> arguments;
        Grade grade;
    };
    const std::vector<Case> cases{{{}, Grade::a},
                                  {{"--appendfsync", "everysec"}, Grade::b},
                                  {{"--appendfsync", "no"}, Grade::b},
                                  {{"--no-appendfsync-on-rewrite", "yes"}, Grade::b},
                                  {{"--rename-command", "CONFIG", ""}, Grade::b},
                                  {{"--maxmemory-policy", "volatile-lru"}, Grade::a},
                                  {{"--maxmemory-policy", "allkeys-lru"}, Grade::c},
                                  {{"--appendonly", "no"}, Grade::c},
                                  {{"--appendonly", "no", "--save", "1 1"}, Grade::c}};
    for (const Case& one : cases) {
        SCOPED_TRACE(testing::PrintToString(one.arguments));
        const OwnRedis redis(one.arguments);
        const auto store = must(redis.open("?allow_lossy=on"));
        EXPECT_EQ(store->info().grade, one.grade);
        EXPECT_FALSE(store->info().reasons.empty());
        if (one.grade == Grade::c) {
            EXPECT_THAT(redis.open(), RefusedWith(Errc::store_unsafe));
        }
    }
}

TEST(RedisGrade, ReplicasLowerItAndAReplicaIsOnlyRead) {
    const OwnRedis master;
    const FencingToken token =
        must(must(master.open())->apply_one(by_alice(lock("x"), std::chrono::hours{1}), soon())).lock.token;
    const OwnRedis replica({"--replicaof", "127.0.0.1 " + std::to_string(master.by_hand().port()), "--masterauth",
                            std::string(server_password)});
    RedisByHand server = master.by_hand();
    const Deadline end = soon();
    while (server.ask({"INFO", "replication"}).find("connected_slaves:1") == std::string::npos &&
           !end.passed(host_clock())) {
    }
    EXPECT_EQ(must(master.open())->info().grade, Grade::b);
    RedisByHand copy = replica.by_hand();
    while (copy.ask({"INFO", "replication"}).find("master_link_status:up") == std::string::npos &&
           !end.passed(host_clock())) {
    }
    const auto store = must(replica.open());
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).token, token);
    EXPECT_EQ(must(store->list({}, soon())).size(), 1U);
    EXPECT_EQ(must(store->history({.name = lock("x")}, soon())).size(), 1U);
    EXPECT_TRUE(store->info().may_be_stale);
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::store_unavailable));
    copy.ask({"REPLICAOF", "NO", "ONE"});
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), soon()), Granted());
    EXPECT_FALSE(store->info().may_be_stale);
}

TEST(RedisGrade, AMasterThatBecomesAReplicaIsRefusedUntilItIsOneAgain) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), std::chrono::hours{1});
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    server.ask({"REPLICAOF", "127.0.0.1", "1"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 1U);
    server.ask({"REPLICAOF", "NO", "ONE"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 2U);
}

TEST(RedisPassword, ThatWasChangedUnderAnOpenStoreIsDeniedToThoseWithoutTimeForAnotherAttempt) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    RedisByHand server = redis.by_hand();
    server.ask({"CONFIG", "SET", "requirepass", "another"});
    server.ask({"CLIENT", "KILL", "TYPE", "normal"});
    for (int call = 0; call < 7; ++call) ASSERT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::denied));
    int spared = 0;
    for (int call = 0; call < 50; ++call) {
        const auto status = store->inspect(lock("x"), within(std::chrono::milliseconds{10}));
        ASSERT_FALSE(status);
        if (status.error().message.find("just now") == std::string::npos) continue;
        ++spared;
        EXPECT_THAT(status, RefusedWith(Errc::denied));
    }
    EXPECT_GT(spared, 0);
}

TEST(RedisPassword, AWrongOneIsDeniedAndNoneIsShown) {
    OwnRedis redis;
    const std::string place = "127.0.0.1:" + std::to_string(redis.server().port()) + "/0";
    const std::string secret = "another-canary-55d1";
    std::vector<std::string> said;
    for (const std::string& who : {":" + secret + "@", "somebody:" + secret + "@", std::string()}) {
        const auto refused = open_store("redis://" + who + place);
        ASSERT_THAT(refused, RefusedWith(Errc::denied)) << who;
        said.push_back(refused.error().message);
    }
    const auto misspelt = open_store("redis://:" + secret + "@" + place + "?prefex=x");
    ASSERT_THAT(misspelt, RefusedWith(Errc::usage));
    said.push_back(misspelt.error().message);
    const auto store = must(redis.open());
    said.push_back(store->info().url);
    for (const Finding& finding : store->examine(soon())) said.push_back(finding.detail);
    redis.server().kill();
    said.push_back(store->inspect(lock("x"), soon()).error().message);
    said.push_back(redis.open().error().message);
    for (const std::string& text : said) {
        EXPECT_THAT(text, Not(HasSubstr(secret)));
        EXPECT_THAT(text, Not(HasSubstr(server_password)));
    }
}

// As docs/reference/stores.md has it.
TEST(RedisPermissions, TheDocumentedOnesAreEnough) {
    const OwnRedis redis;
    RedisByHand server = redis.by_hand();
    const std::vector<std::string> rights{
        "ACL",           "SETUSER",       "locker",      "on",       ">" + std::string(server_password),
        "~{holdfast}:*", "&{holdfast}:*", "+@scripting", "+@string", "+@hash",
        "+@sortedset",   "+@list",        "+@pubsub",    "+exists",  "+time",
        "+info",         "+config|get"};
    EXPECT_EQ(server.ask(rights), "OK");
    const auto store = must(open_store("redis://locker:" + std::string(server_password) +
                                       "@127.0.0.1:" + std::to_string(server.port()) + "/0"));
    EXPECT_EQ(store->info().grade, Grade::a);
    const Acquire alice = by_alice(lock("x"), std::chrono::hours{1});
    const std::vector<Request> both{alice, by_alice(lock("y"), std::chrono::hours{1})};
    EXPECT_THAT(must(store->apply(both, soon())), testing::Each(Granted()));
    EXPECT_THAT(store->apply_one(queued(by_bob(lock("x"))), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store->apply_one(release(alice), soon()), Granted());
    EXPECT_THAT(store->apply_one(Prune{lock("x"), 1, "root"}, soon()), Granted());
    EXPECT_EQ(must(store->list({.with_free = true}, soon())).size(), 2U);
    expect_sound(*store, lock("x"));
}

TEST(RedisUrl, WhatCannotWorkIsRefused) {
    for (const char* url :
         {"redis:127.0.0.1", "redis://127.0.0.1:1/x", "redis://127.0.0.1:1/-1", "redis://a:1,b:2/0",
          "redis://127.0.0.1:1/0?prefix=", "redis://127.0.0.1:1/0?prefix={x}", "redis://127.0.0.1:1/0?prefix=a%20b",
          "redis://127.0.0.1:1/0?tls=verify", "redis://127.0.0.1:1/0?tls_ca=x", "rediss://127.0.0.1:1/0?tls=maybe",
          "rediss://127.0.0.1:1/0?tls=off&tls_ca=x", "redis://user@127.0.0.1:1/0"})
        EXPECT_THAT(open_store(url), RefusedWith(Errc::usage)) << url;
    EXPECT_THAT(open_store("redis://127.0.0.1:1/0"), RefusedWith(Errc::store_unavailable));
}

TEST(RedisUrl, StoresWithDifferentPrefixesAndDatabasesAreStrangers) {
    const OwnRedis redis;
    const auto one = must(redis.open("?prefix=one"));
    const auto two = must(redis.open("?prefix=two"));
    std::string elsewhere = redis.url("?prefix=one");
    elsewhere.replace(elsewhere.find("/0?"), 3, "/1?");
    const auto three = must(open_store(elsewhere));
    for (const auto* store : {&one, &two, &three})
        EXPECT_THAT((*store)->apply_one(by_alice(lock("x")), soon()), Granted());
    EXPECT_EQ(must(two->list({}, soon())).size(), 1U);
}

TEST(RedisTls, OnlyTheServerThatTheCertificateNamesIsTrusted) {
    const ServerFolder folder;
    const Certificate right = make_certificate(folder, "right", "DNS:localhost");
    const Certificate wrong = make_certificate(folder, "wrong", "DNS:localhost");
    const std::uint16_t port = free_port();
    const OwnRedis redis({"--tls-port", std::to_string(port), "--tls-cert-file", right.file, "--tls-key-file",
                          right.key, "--tls-auth-clients", "no"});
    const auto open = [&](const std::string& host, const std::string& parameters) {
        return open_store("rediss://:" + std::string(server_password) + "@" + host + ":" + std::to_string(port) + "/0" +
                          parameters);
    };
    const auto store = must(open("localhost", "?tls_ca=" + right.file));
    const Acquire alice = by_alice(lock("x"), std::chrono::hours{1});
    EXPECT_THAT(store->apply_one(alice, soon()), Granted());
    Acquire large = by_alice(lock("large"));
    large.meta = {{"big", std::string(4000, 'x')}};
    EXPECT_THAT(store->apply_one(large, soon()), Granted());
    std::vector<Request> renewals(200, renewal(alice));
    must(store->apply(renewals, soon()));
    EXPECT_EQ(must(store->history({.name = lock("x")}, soon())).size(), 201U);

    EXPECT_THAT(open("localhost", "?tls_ca=" + wrong.file), RefusedWith(Errc::store_unavailable)) << "another's word";
    EXPECT_THAT(open("localhost", ""), RefusedWith(Errc::store_unavailable)) << "nobody's word";
    EXPECT_THAT(open("127.0.0.1", "?tls_ca=" + right.file), RefusedWith(Errc::store_unavailable)) << "another host";
    const auto unverified = must(open("127.0.0.1", "?tls=off"));
    EXPECT_THAT(unverified->apply_one(renewal(alice), soon()), Granted());
    int complaints = 0;
    for (const Finding& finding : unverified->examine(soon())) complaints += finding.ok ? 0 : 1;
    EXPECT_EQ(complaints, 1);
    EXPECT_THAT(open("localhost", "?tls_ca=/nowhere"), RefusedWith(Errc::config));

    const Certificate elsewhere = make_certificate(folder, "elsewhere", "DNS:elsewhere.example");
    redis.by_hand().ask({"CONFIG", "SET", "tls-cert-file", elsewhere.file, "tls-key-file", elsewhere.key});
    EXPECT_THAT(open("localhost", "?tls_ca=" + elsewhere.file), RefusedWith(Errc::store_unavailable)) << "another name";
}

}  // namespace
}  // namespace holdfast::tests
