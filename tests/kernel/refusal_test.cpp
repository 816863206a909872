// What a refusal carries for people and programs. Words may change; what they must and must not contain may not.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class RefusalTest : public KernelTest {
protected:
    std::string message_of(const Request& request) {
        const Reply reply = apply(request);
        return reply ? "granted" : reply.error().message;
    }
};

TEST_F(RefusalTest, AConflictSaysWhoForWhatAndHowLong) {
    Acquire alice = by("web-3:ci:812:4711", name_, 30s);
    alice.operation = "migrate up";
    alice.reason = "release 7";
    granted(alice);
    elapse(6s);
    const std::string message = message_of(by_bob(name_));
    for (const char* part : {"migrate/prod", "ci@web-3 (pid 812)", "migrate up", "release 7", "24 s"})
        EXPECT_THAT(message, HasSubstr(part));
}

TEST_F(RefusalTest, WhatBeganBeforeMidnightIsToldWithItsDay) {
    const auto midnight = std::chrono::ceil<std::chrono::days>(now());
    elapse(midnight - now() - 10min);
    granted(by_alice(name_, 60min));
    elapse(1min);
    EXPECT_THAT(message_of(by_bob(name_)), HasSubstr("since 23:50:00 UTC"));
    elapse(10min);
    EXPECT_THAT(message_of(by_bob(name_)), HasSubstr("since 2023-11-14 23:50:00 UTC"));
    // The same minute of another day is not today.
    elapse(24h - 12min);
    granted(by_alice(name_, 60min));
    elapse(24h - 59min);
    EXPECT_THAT(message_of(renewal(by_bob(name_))), HasSubstr("since 2023-11-15 23:49:00 UTC"));
}

TEST_F(RefusalTest, NoMessageEverContainsAKey) {
    const Acquire alice = by_alice(name_);
    granted(alice);
    const std::vector<Request> requests{by_bob(name_), Renew{name_, {LockId::random(), alice.as.key}, lasting(1s)},
                                        Release{name_, {LockId::random(), alice.as.key}}, check(name_, FencingToken{1}),
                                        Break{name_, LockId::random(), "root", ""}};
    for (const Request& request : requests) EXPECT_THAT(message_of(request), Not(HasSubstr(alice.as.key.reveal())));
}

TEST_F(RefusalTest, TheHoldersTextCannotMoveTheReadersTerminal) {
    Acquire alice = by_alice(name_);
    alice.reason = "line\nbreak \x1b[2J";
    granted(alice);
    const std::string message = message_of(by_bob(name_));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    EXPECT_THAT(message, Not(HasSubstr("\x1b")));
}

TEST_F(RefusalTest, EveryRefusalOfALeaseShowsTheLockAsItIs) {
    const Acquire alice = by_alice(name_, 1s);
    granted(alice);
    elapse(2s);
    for (const Request& request : std::vector<Request>{renewal(alice), renewal(by_bob(name_)), release(by_bob(name_)),
                                                       check(name_, status().token), check(name_, FencingToken{1})}) {
        const Reply reply = apply(request);
        ASSERT_FALSE(reply);
        ASSERT_TRUE(reply.error().holder) << reply.error().message;
        EXPECT_EQ(*reply.error().holder, status());
    }
}

TEST_F(RefusalTest, ShortlyAfterMidnightTheDayIsTold) {
    elapse(1h + 36min + 40s);
    ASSERT_EQ(to_rfc3339(now()), "2023-11-14T23:50:00.000Z");
    granted(by_alice(name_, 24h));
    elapse(9min + 59s);
    EXPECT_THAT(message_of(by_bob(name_)), HasSubstr(" since 23:50:00 UTC"));
    elapse(1s);
    EXPECT_THAT(message_of(by_bob(name_)), HasSubstr(" since 2023-11-14 23:50:00 UTC"));
}

}  // namespace
}  // namespace holdfast::tests
