// Goal: what etcd leaves out of its messages, or says in passing, is understood as it is meant, and what is no message
// of its is not taken for one. Method: bytes that etcd 3.4.23 sent, without the numbers of the cluster.

#include "stores/etcd/wire/messages.hpp"
#include "stores/etcd/wire/protobuf.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>

namespace holdfast::stores::etcd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using tests::must;

/// `"0a02 1803"` is four bytes.
std::string bytes(std::string_view hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size();) {
        if (hex[i] == ' ') {
            ++i;
            continue;
        }
        out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
        i += 2;
    }
    return out;
}

// A client that takes such an answer for a success believes that it holds another client's lock.
TEST(EtcdMessages, ATransactionThatFailedDoesNotSaySo) {
    const TxnAnswer failed =
        must(read_txn(bytes("0a04 18ea8201 1a20 0a1e 0a0418ea8201 1214 0a056361702f61 10ea8201 18ea8201 2001 2a0131 "
                            "2001")));
    EXPECT_FALSE(failed.succeeded);
    EXPECT_EQ(failed.revision, 16746);
    ASSERT_THAT(failed.found, SizeIs(1));
    ASSERT_THAT(failed.found[0].keys, SizeIs(1)) << "how things are instead";
    EXPECT_EQ(failed.found[0].keys[0].key, "cap/a");
    EXPECT_EQ(failed.found[0].keys[0].value, "1");
    EXPECT_EQ(failed.found[0].keys[0].changed_in, 16746);
    EXPECT_EQ(failed.found[0].count, 1U);

    const TxnAnswer done = must(read_txn(bytes("0a04 18ea8201 1001 1a08 1206 0a0418ea8201 1a08 0a06 0a0418ea8201")));
    EXPECT_TRUE(done.succeeded);
    ASSERT_THAT(done.found, SizeIs(2)) << "one for the change, too";
    EXPECT_THAT(done.found[1].keys, IsEmpty()) << "a key that is not there has no list";
    EXPECT_EQ(done.found[1].count, 0U);
}

// A revision that is cut compares as if the key were not there or were another.
TEST(EtcdMessages, NumbersAreExactUpToTheLastOnes) {
    const TxnAnswer answer = must(
        read_txn(bytes("0a0a 18ffffffffffffffff7f 1a1b 0a19 120c 0a0161 1881808080808080 10 20ffffffffffffffffff01")));
    EXPECT_EQ(answer.revision, 9'223'372'036'854'775'807);
    ASSERT_THAT(answer.found, SizeIs(1));
    EXPECT_EQ(answer.found[0].count, 18'446'744'073'709'551'615U);
    ASSERT_THAT(answer.found[0].keys, SizeIs(1));
    EXPECT_EQ(answer.found[0].keys[0].changed_in, 9'007'199'254'740'993);

    Txn txn;
    txn.if_unchanged("a", 9'007'199'254'740'993);
    EXPECT_EQ(txn.message(), bytes("0a0e 1002 1a0161 3081808080808080 10"));
}

// A key that is not there was changed in revision 0. Left out, it would be compared by its version.
TEST(EtcdMessages, AComparisonWithNothingSaysSo) {
    Txn txn;
    txn.if_unchanged("a", 0);
    txn.if_absent({"a", "b"});
    txn.get({.keys = {"a"}});
    EXPECT_EQ(txn.message(), bytes("0a07 1002 1a0161 3000 0a0b 1001 1a0161 2800 820401 62 1205 0a03 0a0161"));
}

TEST(EtcdMessages, KeysAndValuesMayBeAnyBytes) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    std::string one;
    append_bytes(one, 1, every_byte);
    append_bytes(one, 5, every_byte);
    std::string list;
    append_bytes(list, 2, one);
    std::string response;
    append_bytes(response, 1, list);
    std::string answer;
    append_bytes(answer, 1, "");
    append_bytes(answer, 3, response);
    const TxnAnswer read = must(read_txn(answer));
    EXPECT_EQ(read.found.at(0).keys.at(0).key, every_byte);
    EXPECT_EQ(read.found.at(0).keys.at(0).value, every_byte);
}

// Half of an answer would be a store with fewer keys.
TEST(EtcdMessages, AnAnswerThatIsCutOffAnywhereIsNone) {
    const std::string whole =
        bytes("0a04 18ea8201 1a20 0a1e 0a0418ea8201 1214 0a056361702f61 10ea8201 18ea8201 2001 2a0131 2001");
    const std::size_t end_of_header = 6;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        if (length == end_of_header) continue;  // An answer without operations.
        EXPECT_FALSE(read_txn(whole.substr(0, length))) << length;
    }
    EXPECT_FALSE(read_txn("<html>nobody of that name</html>"));
    EXPECT_FALSE(read_txn(bytes("0a ffffffffffffffffffff01"))) << "a length beyond all numbers";
}

// A reader that expects a type misses every change that is not a deletion, and sleeps on.
TEST(EtcdMessages, AChangeHasNoTypeInAWatch) {
    const WatchNews changed = read_news(bytes("0a04 18eb8201 5a16 1214 0a056361702f77 10eb8201 18eb8201 2001 2a0131"));
    EXPECT_FALSE(changed.over);
    ASSERT_THAT(changed.events, SizeIs(1));
    EXPECT_EQ(changed.events[0].key, "cap/w");
    EXPECT_EQ(changed.events[0].value, "1");
    EXPECT_EQ(changed.events[0].changed_in, 16747);

    const WatchNews removed = read_news(bytes("0a04 18ec8201 5a0f 0801 120b 0a056361702f77 18ec8201"));
    EXPECT_FALSE(removed.over);
    ASSERT_THAT(removed.events, SizeIs(1));
    EXPECT_THAT(removed.events[0].value, IsEmpty());
}

// The call goes on, and nothing will ever come of it.
TEST(EtcdMessages, AWatchFromAForgottenRevisionIsOver) {
    EXPECT_TRUE(read_news(bytes("0a02 2002 2001 2803")).over);
    EXPECT_TRUE(read_news(bytes("0a02 2002 2803")).over);
    EXPECT_TRUE(read_news(bytes("0a02 2002 2001")).over);
    EXPECT_TRUE(read_news("no message").over);
    EXPECT_LT(read_news("no message").id, 0);
    const WatchNews began = read_news(bytes("0a04 18ea8201 1003 1801"));
    EXPECT_TRUE(began.created);
    EXPECT_EQ(began.id, 3);
    EXPECT_EQ(began.revision, 16746);
    EXPECT_FALSE(began.over);
}

// The filter's number is 0, which would be left out by itself.
TEST(EtcdMessages, AWatchForDeletionsSaysSo) {
    EXPECT_EQ(watch_message(3, "a", true), bytes("0a08 0a0161 2a0100 3803"));
    EXPECT_EQ(watch_message(3, "a", false), bytes("0a05 0a0161 3803"));
    EXPECT_EQ(cancel_message(3), bytes("1202 0803"));
}

TEST(EtcdMessages, WhatANodeSaysOfItselfIsUnderstood) {
    const NodeStatus status = read_status(bytes("0a04 18ea8201 1206332e342e3233 1880c0e639 20c0c0caafc1ba96892e"));
    EXPECT_EQ(status.version, "3.4.23");
    EXPECT_EQ(status.db_size, 121'217'024U);
    EXPECT_TRUE(status.has_leader);
    EXPECT_FALSE(read_status(bytes("0a00 1206332e342e3233")).has_leader) << "a number that is 0 is left out";
    EXPECT_EQ(count_members(bytes("0a02 2002 1202 0801 1202 0802")), 2U);
    EXPECT_THAT(read_alarms(bytes("1202 1001 1202 1002")), testing::ElementsAre("NOSPACE", "CORRUPT"));
    EXPECT_THAT(read_alarms(""), IsEmpty()) << "an answer without a byte";
}

}  // namespace
}  // namespace holdfast::stores::etcd
