// Goal: what etcd's JSON gateway leaves out, writes as text or says in passing is understood as it is meant. Method:
// answers that etcd 3.4.23 gave, without the numbers of the cluster.

#include "stores/etcd/base64.hpp"
#include "stores/etcd/messages.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>

namespace holdfast::stores::etcd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using tests::must;

// Whoever takes the status 200 for a success believes that it was granted what another has.
TEST(EtcdMessages, ATransactionThatFailedDoesNotSaySo) {
    const TxnAnswer failed = must(read_txn(
        R"({"header":{"revision":"2"},"responses":[{"response_range":{"header":{"revision":"2"},"kvs":[{"key":"YQ==",)"
        R"("create_revision":"2","mod_revision":"2","version":"1","value":"MQ=="}],"count":"1"}}]})"));
    EXPECT_FALSE(failed.succeeded);
    ASSERT_THAT(failed.found, SizeIs(1));
    ASSERT_THAT(failed.found[0].keys, SizeIs(1)) << "how things are instead";

    const TxnAnswer done =
        must(read_txn(R"({"header":{"revision":"3"},"succeeded":true,"responses":[{"response_put":{"header":)"
                      R"({"revision":"3"}}},{"response_range":{"header":{"revision":"3"}}}]})"));
    EXPECT_TRUE(done.succeeded);
    ASSERT_THAT(done.found, SizeIs(2));
    EXPECT_THAT(done.found[1].keys, IsEmpty()) << "a key that is not there has no list";
    EXPECT_EQ(done.found[1].count, 0U);
}

// A revision that is read as 0, or rounded as a double, compares as if the key were not there or were another.
TEST(EtcdMessages, NumbersAreTextAndExactUpToTheLastOnes) {
    const TxnAnswer answer =
        must(read_txn(R"({"header":{"revision":"9223372036854775807"},"responses":[{"response_range":{"kvs":[)"
                      R"({"key":"YQ==","mod_revision":"9007199254740993"}],"count":"18446744073709551615"}}]})"));
    EXPECT_EQ(answer.revision, 9'223'372'036'854'775'807);
    ASSERT_THAT(answer.found, SizeIs(1));
    EXPECT_EQ(answer.found[0].count, 18'446'744'073'709'551'615U);
    ASSERT_THAT(answer.found[0].keys, SizeIs(1));
    EXPECT_EQ(answer.found[0].keys[0].changed_in, 9'007'199'254'740'993);

    Txn txn;
    txn.if_unchanged("a", 9'007'199'254'740'993);
    EXPECT_THAT(txn.text(), testing::HasSubstr(R"("mod_revision":"9007199254740993")"));
    EXPECT_EQ(read_refusal(R"({"error":"x","code":14})").code, 14) << "a small one is a number";
}

// A record that is kept or compared in base64 is damaged, or never equal to what was written.
TEST(EtcdMessages, KeysAndValuesAreBase64) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    for (const std::size_t length : {0U, 1U, 2U, 3U, 255U, 256U}) {
        const std::string bytes = every_byte.substr(0, length);
        std::string text;
        append_base64(text, bytes);
        EXPECT_EQ(from_base64(text), bytes) << length;
    }
    EXPECT_EQ(from_base64("YQ=="), "a");
    for (const char* wrong : {"Y", "YQ=", "Y===", "YQ=a", "Y-==", "Y Q="}) EXPECT_FALSE(from_base64(wrong)) << wrong;

    const TxnAnswer answer = must(read_txn(
        R"({"header":{},"responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"/wA="}],"count":"1"}}]})"));
    EXPECT_EQ(answer.found.at(0).keys.at(0).key, "a");
    EXPECT_EQ(answer.found.at(0).keys.at(0).value, std::string("\xff\0", 2));
    EXPECT_FALSE(read_txn(R"({"header":{},"responses":[{"response_range":{"kvs":[{"key":"?"}]}}]})"))
        << "what is not base64 is no key of ours";
}

// Whoever looks for a type misses every change that is not a deletion, and sleeps on.
TEST(EtcdMessages, AChangeHasNoTypeInAWatch) {
    const WatchNews changed =
        read_news(R"({"result":{"header":{"revision":"4"},"events":[{"kv":{"key":"YQ==","create_revision":"2",)"
                  R"("mod_revision":"4","version":"3","value":"MQ=="}}]}})");
    EXPECT_FALSE(changed.over);
    ASSERT_THAT(changed.events, SizeIs(1));
    EXPECT_EQ(changed.events[0].key, "a");
    EXPECT_EQ(changed.events[0].value, "1");

    const WatchNews removed = read_news(
        R"({"result":{"header":{"revision":"6"},"events":[{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"6"}}]}})");
    EXPECT_FALSE(removed.over);
    ASSERT_THAT(removed.events, SizeIs(1));
    EXPECT_THAT(removed.events[0].value, IsEmpty());
}

// The connection stays open, and nothing will ever come on it.
TEST(EtcdMessages, AWatchFromAForgottenRevisionIsOver) {
    EXPECT_TRUE(read_news(R"({"result":{"header":{},"canceled":true,"compact_revision":"3"}})").over);
    EXPECT_TRUE(read_news(R"({"result":{"header":{},"compact_revision":"3"}})").over);
    EXPECT_TRUE(read_news(R"({"result":{"header":{},"canceled":true}})").over);
    EXPECT_TRUE(read_news(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})").over);
    EXPECT_TRUE(read_news("not JSON").over);
    const WatchNews began = read_news(R"({"result":{"header":{"revision":"4"},"created":true}})");
    EXPECT_TRUE(began.created);
    EXPECT_FALSE(began.over);
}

}  // namespace
}  // namespace holdfast::stores::etcd
