// Goal: a stream tells an event that it sent already from a new one, and a gap from the next event.
#include "server/events.hpp"

#include <gtest/gtest.h>

namespace holdfast::server {
namespace {

using Place = NewestEvents::Place;

AuditEvent event_of(const char* name, std::uint64_t seq, std::uint64_t token) {
    return {.name = *LockName::parse(name),
            .seq = seq,
            .at = {},
            .kind = EventKind::acquired,
            .token = {token},
            .lock_id = LockId::random()};
}

TEST(NewestEvents, TellsRepetitionsAndGapsOfEachLock) {
    NewestEvents newest;
    EXPECT_EQ(newest.take(event_of("a", 7, 3)), Place::follows) << "what was before is not known";
    EXPECT_EQ(newest.take(event_of("b", 1, 1)), Place::follows);
    EXPECT_EQ(newest.take(event_of("a", 7, 3)), Place::is_repetition);
    EXPECT_EQ(newest.take(event_of("a", 6, 3)), Place::is_repetition);
    EXPECT_EQ(newest.take(event_of("a", 8, 3)), Place::follows) << "a repetition changes nothing";
    EXPECT_EQ(newest.take(event_of("a", 10, 4)), Place::follows_gap);
    EXPECT_EQ(newest.take(event_of("b", 2, 1)), Place::follows);
    EXPECT_EQ(newest.take(event_of("a", 10, 4)), Place::is_repetition);
}

TEST(NewestEvents, AreNewWhereAStoreBeginsAgain) {
    NewestEvents newest;
    EXPECT_EQ(newest.take(event_of("a", 7, 3)), Place::follows);
    EXPECT_EQ(newest.take(event_of("a", 1, 4)), Place::follows) << "restored: smaller numbers, a higher token";
    EXPECT_EQ(newest.take(event_of("a", 2, 4)), Place::follows);
    newest.clear();
    EXPECT_EQ(newest.take(event_of("a", 2, 4)), Place::follows);
}

}  // namespace
}  // namespace holdfast::server
