// Goal: pruned events leave the disk, and no moment of that loses, doubles or hides another event.
// Method: pruning at every kind of place in a log of several files, and the files as a crash may leave them.

#include "file_fixture.hpp"
#include "holdfast/audit.hpp"
#include "stores/file/lock_folder.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace holdfast::stores::file {
namespace {

using Seqs = std::vector<std::uint64_t>;
using Files = std::map<std::string, std::string>;

Seqs from_to(std::uint64_t first, std::uint64_t last) {
    Seqs seqs(last - first + 1);
    std::iota(seqs.begin(), seqs.end(), first);
    return seqs;
}

Seqs seqs_of(const std::vector<AuditEvent>& events) {
    Seqs seqs;
    for (const AuditEvent& event : events) seqs.push_back(event.seq);
    return seqs;
}

class FilePrune : public FileStoreTest {
protected:
    void SetUp() override { store_ = open(); }

    /// A held lock with so many events, of which all but the newest are in its log.
    void use(int events) {
        std::vector<Request> batch{acquire_of("x", as_)};
        for (int i = 2; i < events; ++i) batch.emplace_back(Renew{lock_name("x"), as_, ttl(30s)});
        const auto replies = store_->apply(batch, Deadline::never());
        ASSERT_TRUE(replies);
        for (const Reply& reply : *replies) ASSERT_TRUE(reply);
        renew();
    }
    void renew() { static_cast<void>(granted(*store_, Renew{lock_name("x"), as_, ttl(30s)})); }

    /// One request prunes a limited number of events.
    void prune(std::uint64_t through) {
        while (status().pruned_seq < through)
            static_cast<void>(granted(*store_, Prune{lock_name("x"), through, "root"}));
    }

    [[nodiscard]] LockStatus status() const { return *store_->inspect(lock_name("x"), Deadline::never()); }
    [[nodiscard]] std::vector<AuditEvent> events(HistoryQuery query = {}) const {
        query.name = lock_name("x");
        const auto found = store_->history(query, Deadline::never());
        EXPECT_TRUE(found) << (found ? "" : found.error().message);
        return found ? *found : std::vector<AuditEvent>{};
    }
    /// All events are there, from the first that was not pruned to the newest.
    void expect_whole() const {
        const LockStatus now = status();
        EXPECT_EQ(seqs_of(events()), from_to(now.pruned_seq + 1, now.seq));
        const auto chain = verify_chain(events(), now);
        EXPECT_TRUE(chain) << chain.error().message;
    }

    [[nodiscard]] Files files() const {
        Files found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_of("x")))
            if (entry.is_regular_file()) found[entry.path().filename()] = content_of(entry.path());
        return found;
    }
    void put_back(const Files& before) const {
        for (const auto& [name, content] : files()) std::filesystem::remove(folder_of("x") / name);
        for (const auto& [name, content] : before) write_file(folder_of("x") / name, content);
    }
    [[nodiscard]] std::set<std::string> logs() const {
        std::set<std::string> found;
        for (const auto& [name, content] : files())
            if (name.starts_with("audit.")) found.insert(name);
        return found;
    }
    [[nodiscard]] std::size_t size_of_logs() const {
        std::size_t size = 0;
        for (const auto& name : logs()) size += std::filesystem::file_size(folder_of("x") / name);
        return size;
    }

    std::unique_ptr<Store> store_;
    Credentials as_ = Credentials::random();
};

TEST_F(FilePrune, TheLogIsWholeWhereverItIsCut) {
    use(2090);
    const Files all = files();
    for (const std::uint64_t through :
         {1U, 15U, 1000U, 1022U, 1023U, 1024U, 1025U, 1026U, 2047U, 2048U, 2049U, 2060U, 2072U, 2080U, 2089U, 2090U}) {
        SCOPED_TRACE(through);
        put_back(all);
        prune(through);
        EXPECT_EQ(status().pruned_seq, through);
        expect_whole();
        for (int i = 0; i < 40; ++i) renew();
        expect_whole();
        prune(through + 1);
        expect_whole();
        prune(status().seq - 3);
        expect_whole();
        if (HasFailure()) return;
    }
}

TEST_F(FilePrune, PartsThatFillUpAfterPruningAreFollowedByOthers) {
    use(1000);
    prune(990);
    for (std::uint64_t last = status().seq; last < 2100; last = status().seq) {
        std::vector<Request> batch;
        for (int i = 0; i < 7; ++i) batch.emplace_back(Renew{lock_name("x"), as_, ttl(30s)});
        ASSERT_TRUE(store_->apply(batch, Deadline::never()));
    }
    expect_whole();
    EXPECT_EQ(logs(), (std::set<std::string>{"audit.991", "audit.1025", "audit.2049"}));
}

TEST_F(FilePrune, WhatIsPrunedLeavesTheDisk) {
    use(3000);
    EXPECT_EQ(logs(), (std::set<std::string>{"audit.1", "audit.1025", "audit.2049"}));
    const std::size_t before = size_of_logs();
    prune(1500);
    EXPECT_EQ(logs(), (std::set<std::string>{"audit.1501", "audit.2049"}));
    EXPECT_LT(size_of_logs(), before * 6 / 10);
    prune(3001);
    EXPECT_EQ(size_of_logs(), 0U);
    expect_whole();
}

TEST_F(FilePrune, ALockWhoseWholeLogWasPrunedIsNotTakenForUnusedWhenItsRecordIsMissing) {
    use(40);
    prune(39);
    ASSERT_TRUE(std::filesystem::remove(folder_of("x") / "record"));
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::record_corrupt);
}

TEST_F(FilePrune, ACrashBeforeTheRecordIsWrittenLeavesTheLogAsItWas) {
    use(1100);
    for (const std::uint64_t through : {900U, 1050U, 1099U}) {
        SCOPED_TRACE(through);
        const Files before = files();
        const auto events_before = events();
        static_cast<void>(granted(*store_, Prune{lock_name("x"), through, "root"}));
        const Files after = files();
        const std::string part = "audit." + std::to_string(status().pruned_seq + 1);
        ASSERT_TRUE(after.contains(part));
        for (const std::size_t written : {std::size_t{0}, after.at(part).size() / 2, after.at(part).size()}) {
            put_back(before);
            write_file(folder_of("x") / part, after.at(part).substr(0, written));
            EXPECT_EQ(events(), events_before);
            for (int i = 0; i < 20; ++i) renew();
            expect_whole();
            prune(through - 10);
            expect_whole();
            EXPECT_FALSE(logs().contains(part)) << "the next one removes it";
        }
        put_back(after);
    }
}

TEST_F(FilePrune, ACrashBeforeTheOldFilesAreRemovedLeavesWhatNobodySees) {
    use(2100);
    const Files before = files();
    prune(1100);
    const auto events_after = events();
    for (const auto& [name, content] : before)
        if (name.starts_with("audit.")) write_file(folder_of("x") / name, content);
    EXPECT_EQ(logs().size(), 4U);
    EXPECT_EQ(events(), events_after);
    for (int i = 0; i < 20; ++i) renew();
    expect_whole();
    prune(1101);
    EXPECT_EQ(logs(), (std::set<std::string>{"audit.1102", "audit.2049"}));
    expect_whole();
}

TEST_F(FilePrune, AReaderThatReadTheRecordBeforeReadsTheLogThatIsThereNow) {
    use(1100);
    const auto dir_now = Folder::open((dir() / "locks").string(), Sync::off);
    ASSERT_TRUE(dir_now && *dir_now);
    const auto lock = LockFolder::find(**dir_now, folder_name(lock_name("x")));
    ASSERT_TRUE(lock && *lock);
    const auto old = (*lock)->load();
    ASSERT_TRUE(old && *old);
    prune(1050);
    const auto found = (*lock)->events_of(**old, {});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, events());
}

TEST_F(FilePrune, ADamagedLogIsNotCutAndOthersOfTheBatchAreServed) {
    use(1100);
    const auto newest = folder_of("x") / "audit.1025";
    write_file(newest, content_of(newest).substr(1));
    prune(1000);  // Another file than the damaged one.
    const Files before = files();
    const std::vector<Request> batch{acquire_of("a", Credentials::random()), Prune{lock_name("x"), 1030, "root"},
                                     acquire_of("y", Credentials::random())};
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    EXPECT_TRUE(replies->at(0));
    ASSERT_FALSE(replies->at(1));
    EXPECT_EQ(replies->at(1).error().code, Errc::audit_chain_broken);
    EXPECT_TRUE(replies->at(2));
    EXPECT_EQ(files(), before);
    prune(1099);  // Nothing of the damaged file is to be kept.
    expect_whole();
}

TEST_F(FilePrune, AFewEventsAreReadWithoutTheRestOfTheLog) {
    use(3100);
    for (const char* middle : {"audit.1025", "audit.2049"}) write_file(folder_of("x") / middle, "");
    const auto oldest = HistoryQuery::Which::oldest;
    EXPECT_EQ(seqs_of(events({.limit = 1024, .which = oldest})), from_to(1, 1024));
    EXPECT_EQ(seqs_of(events({.after_seq = 100, .limit = 3, .which = oldest})), from_to(101, 103));
    EXPECT_EQ(seqs_of(events({.limit = 10})), from_to(3091, 3100));
    EXPECT_EQ(seqs_of(events({.after_seq = 3072})), from_to(3073, 3100));
    EXPECT_FALSE(store_->history({.name = lock_name("x")}, Deadline::never()));
}

TEST_F(FilePrune, APageOfAListIsReadWithoutTheRest) {
    const std::string hashed(255, 'b');
    for (const std::string& name : {std::string("a"), hashed, std::string("c"), std::string("d")})
        static_cast<void>(granted(*store_, acquire_of(name, Credentials::random())));
    for (const char* damaged : {"a", "d"}) write_file(folder_of(damaged) / "record", "");
    const auto page = store_->list({.after = "a", .limit = 1}, Deadline::never());
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->size(), 1U);
    EXPECT_EQ(page->front().name.text(), hashed);
    EXPECT_FALSE(store_->list({.after = "c"}, Deadline::never()));
}

}  // namespace
}  // namespace holdfast::stores::file
