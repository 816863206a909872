// Goal: time, the audit log, the queue and failures behave on disk as the protocol says.
// Method: a manual clock that is stepped and rebooted; files put back to what a crash would leave.

#include "base/doorbell.hpp"
#include "base/file_lock.hpp"
#include "file_fixture.hpp"
#include "support/isolation.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace holdfast::stores::file {
namespace {

class FileStore : public FileStoreTest {
protected:
    void SetUp() override { store_ = open(); }

    [[nodiscard]] LockStatus status(std::string_view name) {
        const auto status = store_->inspect(lock_name(name), Deadline::never());
        EXPECT_TRUE(status) << (status ? "" : status.error().message);
        return status ? *status : LockStatus{.name = lock_name(name)};
    }
    [[nodiscard]] std::vector<AuditEvent> events(std::string_view name) {
        const auto events = store_->history({.name = lock_name(name)}, Deadline::never());
        EXPECT_TRUE(events) << (events ? "" : events.error().message);
        return events ? *events : std::vector<AuditEvent>{};
    }
    [[nodiscard]] Credentials held(std::string_view name, std::chrono::milliseconds time = 30s) {
        const auto as = Credentials::random();
        static_cast<void>(granted(*store_, acquire_of(name, as, time)));
        return as;
    }
    /// A refused Acquire that leaves a ticket.
    [[nodiscard]] Acquire waiting(std::string_view name, std::chrono::milliseconds ticket = 10s) {
        Acquire request = acquire_of(name, Credentials::random());
        request.ticket = ttl(ticket);
        EXPECT_EQ(refused(*store_, request), Errc::lock_conflict);
        return request;
    }
    [[nodiscard]] base::Doorbell bell_of(const Acquire& request) const {
        base::Doorbell bell;
        const base::Doorbells bells((folder_of(request.name.text()) / "bells").string());
        EXPECT_TRUE(bell.hang(bells, request.as.lock_id));
        return bell;
    }
    /// Rings are there before the change is acknowledged.
    [[nodiscard]] static bool was_rung(base::Doorbell& bell) { return !bell.take_rings().called.empty(); }

    std::unique_ptr<Store> store_;
};

TEST_F(FileStore, AnotherProcessSeesTheSameLock) {
    const auto as = held("x");
    const auto other = open();
    EXPECT_EQ(refused(*other, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    static_cast<void>(granted(*other, Release{lock_name("x"), as}));
    EXPECT_EQ(status("x").state, LockState::free);
}

TEST_F(FileStore, ALeaseLastsItsTtlWhateverTheWallClockDoes) {
    for (const auto step : {1h, -1h}) {
        const std::string name = step > 0h ? "forward" : "back";
        static_cast<void>(held(name, 30s));
        clock_.step_wall(step);
        EXPECT_EQ(status(name).state, LockState::held);
        EXPECT_EQ(refused(*store_, acquire_of(name, Credentials::random())), Errc::lock_conflict);
        clock_.advance(29s);
        EXPECT_EQ(refused(*store_, acquire_of(name, Credentials::random())), Errc::lock_conflict);
        clock_.advance(2s);
        EXPECT_EQ(status(name).state, LockState::expired);
        EXPECT_TRUE(granted(*store_, acquire_of(name, Credentials::random())).stolen_from);
    }
}

TEST_F(FileStore, ATicketLastsItsTimeWhateverTheWallClockDoes) {
    for (const auto step : {1h, -1h}) {
        const std::string name = step > 0h ? "forward" : "back";
        static_cast<void>(held(name, 60s));
        static_cast<void>(waiting(name, 10s));
        clock_.step_wall(step);
        EXPECT_EQ(status(name).waiters, 1U);
        clock_.advance(9s);
        EXPECT_EQ(status(name).waiters, 1U);
        clock_.advance(2s);
        EXPECT_EQ(status(name).waiters, 0U);
    }
}

TEST_F(FileStore, TokensRiseWhenTheWallClockGoesBack) {
    const auto as = held("x");
    const FencingToken before = status("x").token;
    static_cast<void>(granted(*store_, Release{lock_name("x"), as}));
    clock_.step_wall(-24h);
    EXPECT_GT(granted(*store_, acquire_of("x", Credentials::random())).lock.token, before);
}

TEST_F(FileStore, ALeaseOutlivesARebootByNoMoreThanItsTtl) {
    static_cast<void>(held("x", 30s));
    clock_.reboot();
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    clock_.advance(31s);
    EXPECT_TRUE(granted(*store_, acquire_of("x", Credentials::random())).stolen_from);
}

TEST_F(FileStore, ALeaseEndsAfterARebootThatLostTheDateHoweverOftenItIsAskedFor) {
    static_cast<void>(held("x", 30s));
    clock_.reboot();
    clock_.step_wall(-1000h);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
        clock_.advance(9s);
    }
    clock_.advance(4s);
    EXPECT_TRUE(granted(*store_, acquire_of("x", Credentials::random())).stolen_from);
}

TEST_F(FileStore, ALongTailOutlivesAReboot) {
    const auto as = Credentials::random();
    std::vector<Request> batch{acquire_of("x", as)};
    for (int i = 0; i < 50; ++i) batch.emplace_back(Renew{lock_name("x"), as, ttl(30s)});
    ASSERT_TRUE(store_->apply(batch, Deadline::never()));
    clock_.reboot();
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    EXPECT_EQ(events("x").size(), 51U);
    EXPECT_TRUE(verify_chain(events("x"), status("x")));
}

TEST_F(FileStore, TheChainHoldsWhenEventsHaveMovedOutOfTheRecord) {
    const auto as = held("x");
    for (int i = 0; i < 100; ++i) {
        static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
        const auto chain = verify_chain(events("x"), status("x"));
        ASSERT_TRUE(chain) << chain.error().message;
    }
    EXPECT_EQ(events("x").size(), 101U);
    EXPECT_GT(std::filesystem::file_size(folder_of("x") / "audit.1"),
              std::filesystem::file_size(folder_of("x") / "record"));
    const auto newest = store_->history({.name = lock_name("x"), .after_seq = 95, .limit = 3}, Deadline::never());
    ASSERT_TRUE(newest);
    ASSERT_EQ(newest->size(), 3U);
    EXPECT_EQ(newest->front().seq, 99U);
}

TEST_F(FileStore, ABatchOnOneLockKeepsTheChain) {
    const auto as = Credentials::random();
    std::vector<Request> batch{acquire_of("x", as)};
    for (int i = 0; i < 600; ++i) batch.emplace_back(Renew{lock_name("x"), as, ttl(30s)});
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    EXPECT_TRUE(std::ranges::all_of(*replies, [](const Reply& reply) { return reply.has_value(); }));
    EXPECT_EQ(events("x").size(), 601U);
    EXPECT_TRUE(verify_chain(events("x"), status("x")));
}

TEST_F(FileStore, ABatchOverManyLocksAnswersEachInItsPlace) {
    std::vector<Request> batch;
    for (int i = 0; i < 100; ++i) batch.emplace_back(acquire_of("lock/" + std::to_string(i), Credentials::random()));
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    ASSERT_EQ(replies->size(), 100U);
    for (std::size_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(replies->at(i));
        EXPECT_EQ(replies->at(i)->lock.name, name_of(batch[i]));
    }
}

/// What a crash between moving events and writing the record leaves: the new audit file, the old record.
TEST_F(FileStore, ACrashBetweenMovingEventsAndWritingTheRecordLosesNothing) {
    const auto as = held("x");
    const auto record = folder_of("x") / "record";
    const auto audit = folder_of("x") / "audit.1";
    int crashes = 0;
    for (int i = 0; i < 60; ++i) {
        const std::string record_before = content_of(record);
        const std::string audit_before = content_of(audit);
        const auto events_before = events("x");
        static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
        if (content_of(audit) == audit_before) continue;
        ++crashes;
        const std::string audit_after = content_of(audit);
        for (const std::size_t written : {audit_before.size() + 1, audit_after.size() - 1, audit_after.size()}) {
            write_file(record, record_before);
            write_file(audit, audit_after.substr(0, written));
            EXPECT_EQ(events("x"), events_before) << written;
            EXPECT_TRUE(verify_chain(events("x"), status("x"))) << written;
            static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
            EXPECT_EQ(events("x").size(), events_before.size() + 1);
            EXPECT_TRUE(verify_chain(events("x"), status("x"))) << written;
        }
    }
    EXPECT_GE(crashes, 3);
}

TEST_F(FileStore, LookingLeavesEverythingOnDiskAsItWas) {
    const auto as = held("x");
    for (int i = 0; i < 20; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    static_cast<void>(waiting("x"));
    static_cast<void>(held("y", 1s));
    clock_.advance(11s);
    clock_.step_wall(1h);
    const auto before = snapshot(root());
    const auto other = open();
    EXPECT_TRUE(other->inspect(lock_name("x"), Deadline::never()));
    EXPECT_TRUE(other->inspect(lock_name("never/used"), Deadline::never()));
    EXPECT_TRUE(other->list({.with_free = true}, Deadline::never()));
    EXPECT_TRUE(other->history({}, Deadline::never()));
    EXPECT_TRUE(other->wait_for_change({lock_name("x"), 0, std::nullopt}, Deadline::in(clock_, 1s)));
    EXPECT_FALSE(other->examine(Deadline::never()).empty());
    EXPECT_TRUE(other->info().store_id);
    EXPECT_EQ(snapshot(root()), before);
}

TEST_F(FileStore, RequestsForALockThatWasNeverUsedLeaveNoTrace) {
    ASSERT_TRUE(store_->apply({}, Deadline::never()));
    const auto before = snapshot(root());
    const auto as = Credentials::random();
    EXPECT_EQ(refused(*store_, Renew{lock_name("typo"), as, ttl(30s)}), Errc::lock_not_held);
    EXPECT_EQ(refused(*store_, Release{lock_name("typo"), as}), Errc::lock_not_held);
    EXPECT_EQ(refused(*store_, Check{.name = lock_name("typo"), .token = {7}}), Errc::lock_not_held);
    static_cast<void>(granted(*store_, Cancel{lock_name("typo"), as}));
    EXPECT_EQ(snapshot(root()), before);
}

TEST_F(FileStore, ARefusalLeavesTheRecordAsItWas) {
    static_cast<void>(held("x"));
    const auto before = snapshot(folder_of("x"));
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    EXPECT_EQ(snapshot(folder_of("x")), before);
}

TEST_F(FileStore, AWriteThatFailsChangesNothingAndALaterOneSucceeds) {
    const auto as = held("x");
    const std::string before = content_of(folder_of("x") / "record");
    const LockStatus seen = status("x");
    struct rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{100, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto renewed = store_->apply_one(Renew{lock_name("x"), as, ttl(60s)}, Deadline::never());
    const auto taken = store_->apply_one(acquire_of("y", Credentials::random()), Deadline::never());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::signal(SIGXFSZ, old_handler);

    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().code, Errc::store_unavailable);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::store_unavailable);
    EXPECT_EQ(status("x"), seen);
    EXPECT_EQ(status("y").seq, 0U);
    EXPECT_EQ(content_of(folder_of("x") / "record"), before);
    EXPECT_FALSE(std::filesystem::exists(folder_of("x") / "record.tmp"));
    static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(60s)}));
    static_cast<void>(granted(*store_, acquire_of("y", Credentials::random())));
}

/// Unmounts whatever way the test ends.
struct Mount {
    explicit Mount(std::filesystem::path mounted) : path(std::move(mounted)) {}
    Mount(const Mount&) = delete;
    Mount& operator=(const Mount&) = delete;
    ~Mount() { EXPECT_EQ(umount2(path.c_str(), MNT_DETACH), 0); }
    std::filesystem::path path;
};

TEST_F(FileStore, AFullDiskChangesNothingAndAFreedOneWorksAgain) {
    std::filesystem::create_directory(dir());
    if (mount("tmpfs", dir().c_str(), "tmpfs", 0, "size=256k,mode=0700") != 0)
        GTEST_SKIP() << tests::not_here << "cannot mount a small tmpfs here";
    const Mount unmounted(dir());
    const auto as = held("x");
    const std::string before = content_of(folder_of("x") / "record");
    {
        // Beside the store's own files, where it is not looked at: the store exists already.
        std::ofstream filler(dir() / "filler", std::ios::binary);
        const std::string page(4096, 'f');
        while (filler.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
        }
    }
    EXPECT_EQ(refused(*store_, Renew{lock_name("x"), as, ttl(60s)}), Errc::store_unavailable);
    EXPECT_EQ(refused(*store_, Release{lock_name("x"), as}), Errc::store_unavailable);
    EXPECT_EQ(content_of(folder_of("x") / "record"), before);
    EXPECT_EQ(status("x").state, LockState::held);
    std::filesystem::remove(dir() / "filler");
    static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(60s)}));
    EXPECT_TRUE(verify_chain(events("x"), status("x")));
}

TEST_F(FileStore, OnlyTheFirstInLineIsRung) {
    const auto as = held("x");
    const Acquire first = waiting("x");
    const Acquire second = waiting("x");
    auto first_bell = bell_of(first);
    auto second_bell = bell_of(second);
    EXPECT_EQ(status("x").waiters, 2U);
    EXPECT_FALSE(was_rung(first_bell));
    static_cast<void>(granted(*store_, Release{lock_name("x"), as}));
    EXPECT_TRUE(was_rung(first_bell));
    EXPECT_FALSE(was_rung(second_bell));
    // It leaves instead of taking the lock: the next one's turn.
    static_cast<void>(granted(*store_, Cancel{lock_name("x"), first.as}));
    EXPECT_TRUE(was_rung(second_bell));
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    static_cast<void>(granted(*store_, second));
    EXPECT_TRUE(std::filesystem::is_empty(folder_of("x") / "queue"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_of("x") / "bells"));
}

TEST_F(FileStore, TheNextIsRungWhenTheFirstLeavesAnOpenLockOrHasDied) {
    static_cast<void>(held("x", 1s));
    const Acquire first = waiting("x");
    static_cast<void>(waiting("x", 5s));
    const Acquire third = waiting("x");
    auto bell = bell_of(third);
    clock_.advance(2s);
    // Nothing but the queue changes.
    static_cast<void>(granted(*store_, Cancel{lock_name("x"), first.as}));
    EXPECT_FALSE(was_rung(bell)) << "the second is first now";
    clock_.advance(4s);
    static_cast<void>(waiting("x"));
    EXPECT_TRUE(was_rung(bell)) << "whoever comes removes the ticket of the dead";
}

TEST_F(FileStore, ABellIsTakenDownWithTheTicketOfAWaiterThatDied) {
    static_cast<void>(held("x", 60s));
    const auto dead = bell_of(waiting("x", 1s));
    clock_.advance(2s);
    const Acquire next = waiting("x");
    static_cast<void>(bell_of(next));
    const auto bells = std::filesystem::directory_iterator(folder_of("x") / "bells");
    EXPECT_EQ(std::distance(bells, {}), 1);
}

TEST_F(FileStore, AWaiterWithoutATicketIsSentBackAndLeavesNoBell) {
    static_cast<void>(held("x"));
    const Watch watch{lock_name("x"), 1, Credentials::random().lock_id};
    // Without that, this would sleep for ever: the clock stands still.
    EXPECT_TRUE(store_->wait_for_change(watch, Deadline::in(clock_, 1s)));
    EXPECT_TRUE(std::filesystem::is_empty(folder_of("x") / "bells"));
}

TEST_F(FileStore, DeadTicketsAreRemovedWhenTheQueueIsWritten) {
    static_cast<void>(held("x", 60s));
    for (int i = 0; i < 5; ++i) static_cast<void>(waiting("x", 1s));
    clock_.advance(2s);
    EXPECT_EQ(status("x").waiters, 0U);
    static_cast<void>(waiting("x"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_of("x") / "queue"), {}), 1);
}

TEST_F(FileStore, AKeptAliveTicketKeepsItsPlace) {
    const auto as = held("x", 60s);
    const Acquire first = waiting("x", 5s);
    const Acquire second = waiting("x", 30s);
    for (int i = 0; i < 3; ++i) {
        clock_.advance(4s);
        EXPECT_EQ(refused(*store_, first), Errc::lock_conflict);
    }
    static_cast<void>(granted(*store_, Release{lock_name("x"), as}));
    EXPECT_EQ(refused(*store_, second), Errc::lock_conflict);
    static_cast<void>(granted(*store_, first));
}

TEST_F(FileStore, ABatchThatReleasesOneLockAndTakesAnotherUnlessItIsHeldWorks) {
    const auto as = held("x");
    Acquire other = acquire_of("y", Credentials::random());
    other.unless_held.push_back(lock_name("x"));
    EXPECT_EQ(refused(*store_, other), Errc::lock_conflict);
    const std::vector<Request> batch{Release{lock_name("x"), as}, other};
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    EXPECT_TRUE(replies->at(0));
    EXPECT_TRUE(replies->at(1));
}

TEST_F(FileStore, AnOversizedRequestIsRefusedWithoutMakingFolders) {
    ASSERT_TRUE(store_->apply({}, Deadline::never()));
    Acquire request = acquire_of("x", Credentials::random());
    for (int i = 0; i < 1000; ++i) request.unless_held.push_back(lock_name("other/" + std::to_string(i)));
    EXPECT_EQ(refused(*store_, request), Errc::usage);
    EXPECT_TRUE(std::filesystem::is_empty(dir() / "locks"));
}

TEST_F(FileStore, AGuardThatAnotherHoldsIsStoreUnavailableAtTheDeadline) {
    static_cast<void>(held("x"));
    base::Fd fd(::open((folder_of("x") / "guard").c_str(), O_RDWR | O_CLOEXEC));
    const auto guard = base::FileLock::take(fd.get(), clock_, Deadline::never());
    ASSERT_TRUE(guard);
    const auto reply = store_->apply_one(acquire_of("x", Credentials::random()), Deadline{clock_.boottime()});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Errc::store_unavailable);
    // Looking needs no guard.
    EXPECT_EQ(status("x").state, LockState::held);
}

TEST_F(FileStore, AStoreThatIsGoneIsNotMadeAnewByItsUsers) {
    static_cast<void>(held("x"));
    std::filesystem::remove_all(dir());
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::store_unavailable);
    EXPECT_FALSE(std::filesystem::exists(dir()));
}

TEST_F(FileStore, AStoreThatIsMadeAnewHasAnotherIdentityAndHigherTokens) {
    static_cast<void>(held("x"));
    const auto before = store_->info().store_id;
    const auto token = status("x").token;
    std::filesystem::remove_all(dir());
    clock_.advance(10ms);
    const auto another = open();
    EXPECT_GT(granted(*another, acquire_of("x", Credentials::random())).lock.token, token);
    EXPECT_NE(another->info().store_id, before);
}

TEST_F(FileStore, ItsIdIsNotReadAgainOnceItIsKnown) {
    EXPECT_FALSE(store_->store_id());
    static_cast<void>(held("x"));
    const auto known = store_->info().store_id;
    std::filesystem::remove(dir() / "format");
    EXPECT_FALSE(store_->info().store_id);
    EXPECT_EQ(store_->store_id(), known);
}

TEST_F(FileStore, SyncedWritesWorkToo) {
    const auto synced = try_open(clock_, "");
    ASSERT_TRUE(synced);
    const auto as = Credentials::random();
    static_cast<void>(granted(**synced, acquire_of("x", as)));
    for (int i = 0; i < 20; ++i) static_cast<void>(granted(**synced, Renew{lock_name("x"), as, ttl(30s)}));
    EXPECT_TRUE(verify_chain(events("x"), status("x")));
}

}  // namespace
}  // namespace holdfast::stores::file
