// Goal: damaged data blocks a lock with a clear error. It never reads as free, never with a lower token,
// and is never overwritten.
// Method: every single-bit flip and every truncation of each file that the store writes.

#include "file_fixture.hpp"
#include "stores/file/codec.hpp"

#include <functional>

namespace holdfast::stores::file {
namespace {

class FileDamage : public FileStoreTest {
protected:
    void SetUp() override { store_ = open(); }

    /// Tries `check` with every damaged form of the file, and puts it right again.
    static void for_each_damage(const std::filesystem::path& file,
                                const std::function<void(const std::string& what)>& check) {
        const std::string intact = content_of(file);
        ASSERT_FALSE(intact.empty());
        for (std::size_t length = 0; length < intact.size(); ++length) {
            write_file(file, intact.substr(0, length));
            check("cut to " + std::to_string(length));
            EXPECT_EQ(content_of(file), intact.substr(0, length));
            if (HasFailure()) return;
        }
        for (std::size_t bit = 0; bit < intact.size() * 8; ++bit) {
            std::string flipped = intact;
            flipped[bit / 8] = static_cast<char>(static_cast<unsigned char>(flipped[bit / 8]) ^ (1U << (bit % 8)));
            write_file(file, flipped);
            check("bit " + std::to_string(bit));
            EXPECT_EQ(content_of(file), flipped);
            if (HasFailure()) return;
        }
        write_file(file, intact);
    }

    void expect_blocked(const std::string& what) {
        const auto status = store_->inspect(lock_name("x"), Deadline::never());
        ASSERT_FALSE(status) << what;
        EXPECT_EQ(status.error().code, Errc::record_corrupt) << what;
        EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::record_corrupt) << what;
    }

    [[nodiscard]] static std::filesystem::path entry_of(const std::filesystem::path& folder) {
        return std::filesystem::directory_iterator(folder)->path();
    }

    std::unique_ptr<Store> store_;
};

TEST_F(FileDamage, AHeldLockStaysBlockedWhateverHappensToItsRecord) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for_each_damage(folder_of("x") / "record", [&](const std::string& what) {
        expect_blocked(what);
        EXPECT_EQ(refused(*store_, Renew{lock_name("x"), as, ttl(30s)}), Errc::record_corrupt) << what;
    });
    static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
}

TEST_F(FileDamage, AFreeLockIsNotGrantedFromADamagedRecord) {
    const auto as = Credentials::random();
    const auto token = granted(*store_, acquire_of("x", as)).lock.token;
    static_cast<void>(granted(*store_, Release{lock_name("x"), as}));
    for_each_damage(folder_of("x") / "record", [&](const std::string& what) { expect_blocked(what); });
    EXPECT_GT(granted(*store_, acquire_of("x", Credentials::random())).lock.token, token);
}

TEST_F(FileDamage, ADamagedLockIsNotLeftOutOfListsAndHistory) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    static_cast<void>(granted(*store_, acquire_of("y", Credentials::random())));
    write_file(folder_of("x") / "record", "");
    const auto all = store_->list({.with_free = true}, Deadline::never());
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, Errc::record_corrupt);
    const auto events = store_->history({}, Deadline::never());
    ASSERT_FALSE(events);
    EXPECT_EQ(events.error().code, Errc::record_corrupt);
    EXPECT_TRUE(store_->list({.prefix = "y"}, Deadline::never()));
}

TEST_F(FileDamage, ADamagedLockDoesNotFailTheOthersOfItsBatch) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    write_file(folder_of("x") / "record", "");
    const std::vector<Request> batch{acquire_of("x", Credentials::random()), acquire_of("y", Credentials::random())};
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    ASSERT_FALSE(replies->at(0));
    EXPECT_EQ(replies->at(0).error().code, Errc::record_corrupt);
    EXPECT_TRUE(replies->at(1));
}

TEST_F(FileDamage, ALockThatExcludesADamagedOneIsNotGranted) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    write_file(folder_of("x") / "record", "");
    Acquire other = acquire_of("y", Credentials::random());
    other.unless_held.push_back(lock_name("x"));
    EXPECT_EQ(refused(*store_, other), Errc::record_corrupt);
}

// Checksums find accidents; the chain of events also finds a record that was written with care.
TEST_F(FileDamage, ARecordWhoseEventsDoNotLeadToItBlocksTheLock) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    const auto path = folder_of("x") / "record";
    const std::string intact = content_of(path);
    auto saved = saved_lock_in(Bytes(intact.begin(), intact.end()));
    ASSERT_TRUE(saved);
    saved->record.chain[0] ^= 1;
    const Bytes forged = to_file(*saved);
    write_file(path, {forged.begin(), forged.end()});
    expect_blocked("the record has the hash of another event");
}

TEST_F(FileDamage, ARecordThatSaysSomethingElseThanItsEventsIsNoRecord) {
    const auto as = Credentials::random();
    const auto saved_now = [&] {
        const std::string file = content_of(folder_of("x") / "record");
        return saved_lock_in(Bytes(file.begin(), file.end())).value();
    };
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for (int i = 0; i < 2; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    const SavedLock whole = saved_now();
    for (int i = 0; i < 16; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    const SavedLock moved = saved_now();
    ASSERT_GT(moved.audit_bytes, 0U);
    const auto is_record = [](SavedLock saved, const std::function<void(SavedLock&)>& forge) {
        forge(saved);
        return saved_lock_in(to_file(saved)).has_value();
    };
    EXPECT_TRUE(is_record(whole, [](SavedLock&) {}));
    EXPECT_TRUE(is_record(moved, [](SavedLock&) {}));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.tail.clear(); }));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.tail.erase(saved.tail.begin()); }));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.tail.erase(saved.tail.begin() + 1); }));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.tail.pop_back(); }));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.tail.front().name = lock_name("y"); }));
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.audit_bytes = 1; })) << "all events are in the record";
    EXPECT_FALSE(is_record(whole, [](SavedLock& saved) { saved.record.pruned_seq = 1; }));
    EXPECT_FALSE(is_record(moved, [](SavedLock& saved) { saved.audit_bytes = 0; })) << "the first are in the log";
}

TEST_F(FileDamage, BytesBehindARecordOrATicketBlockTheLock) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    Acquire waiting = acquire_of("x", Credentials::random());
    waiting.ticket = ttl(10s);
    EXPECT_EQ(refused(*store_, waiting), Errc::lock_conflict);
    for (const auto& file : {folder_of("x") / "record", entry_of(folder_of("x") / "queue")})
        for (const std::string& more : {std::string(1, '\0'), content_of(file)}) {
            const std::string intact = content_of(file);
            write_file(file, intact + more);
            EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::record_corrupt) << file;
            write_file(file, intact);
        }
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
}

TEST_F(FileDamage, ARecordOfAnotherLockIsRefused) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    static_cast<void>(granted(*store_, acquire_of("y", Credentials::random())));
    write_file(folder_of("x") / "record", content_of(folder_of("y") / "record"));
    expect_blocked("swapped");
}

TEST_F(FileDamage, ALockWhoseRecordIsMissingButNotItsAuditLogIsBlocked) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for (int i = 0; i < 20; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    ASSERT_TRUE(std::filesystem::remove(folder_of("x") / "record"));
    expect_blocked("record removed");
}

TEST_F(FileDamage, ACrashBeforeTheFirstRecordLeavesALockThatWasNeverUsed) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    std::filesystem::rename(folder_of("x") / "record", folder_of("x") / "record.tmp");
    const auto status = store_->inspect(lock_name("x"), Deadline::never());
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, LockState::free);
    EXPECT_EQ(status->token, FencingToken{});
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    EXPECT_FALSE(std::filesystem::exists(folder_of("x") / "record.tmp"));
}

TEST_F(FileDamage, ADamagedAuditLogIsReportedAndDoesNotFreeTheLock) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for (int i = 0; i < 17; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    for_each_damage(folder_of("x") / "audit.1", [&](const std::string& what) {
        const auto events = store_->history({.name = lock_name("x")}, Deadline::never());
        ASSERT_FALSE(events) << what;
        EXPECT_EQ(events.error().code, Errc::audit_chain_broken) << what;
    });
    write_file(folder_of("x") / "audit.1", "");
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
}

TEST_F(FileDamage, BytesBehindTheAuditLogAreIgnored) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for (int i = 0; i < 17; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    // What a power cut may leave of a move that was not finished.
    write_file(folder_of("x") / "audit.1", content_of(folder_of("x") / "audit.1") + std::string(100, '\0'));
    EXPECT_TRUE(store_->history({.name = lock_name("x")}, Deadline::never()));
}

TEST_F(FileDamage, AMissingAuditLogIsReported) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    for (int i = 0; i < 17; ++i) static_cast<void>(granted(*store_, Renew{lock_name("x"), as, ttl(30s)}));
    ASSERT_TRUE(std::filesystem::remove(folder_of("x") / "audit.1"));
    const auto events = store_->history({.name = lock_name("x")}, Deadline::never());
    ASSERT_FALSE(events);
    EXPECT_EQ(events.error().code, Errc::audit_chain_broken);
}

TEST_F(FileDamage, TheAuditLogOfAnotherLockIsReported) {
    for (const char* name : {"x", "y"}) {
        const auto as = Credentials::random();
        static_cast<void>(granted(*store_, acquire_of(name, as)));
        for (int i = 0; i < 17; ++i) static_cast<void>(granted(*store_, Renew{lock_name(name), as, ttl(30s)}));
    }
    ASSERT_EQ(std::filesystem::file_size(folder_of("x") / "audit.1"),
              std::filesystem::file_size(folder_of("y") / "audit.1"));
    write_file(folder_of("x") / "audit.1", content_of(folder_of("y") / "audit.1"));
    const auto events = store_->history({.name = lock_name("x")}, Deadline::never());
    ASSERT_FALSE(events);
    EXPECT_EQ(events.error().code, Errc::audit_chain_broken);
}

TEST_F(FileDamage, AStoreWithADamagedFormatFileIsNeitherOpenedNorUsedNorMadeAnew) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    for_each_damage(dir() / "format", [&](const std::string& what) {
        const auto opened = try_open(clock_);
        ASSERT_FALSE(opened) << what;
        EXPECT_TRUE(opened.error().code == Errc::record_corrupt || opened.error().code == Errc::format_unsupported)
            << what;
        EXPECT_FALSE(store_->inspect(lock_name("x"), Deadline::never())) << what;
        EXPECT_FALSE(store_->apply({}, Deadline::never())) << what;
    });
}

TEST_F(FileDamage, ADamagedTicketBlocksTheLock) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as)));
    Acquire waiting = acquire_of("x", Credentials::random());
    waiting.ticket = ttl(10s);
    EXPECT_EQ(refused(*store_, waiting), Errc::lock_conflict);
    const auto ticket = entry_of(folder_of("x") / "queue");
    for_each_damage(ticket, [&](const std::string& what) {
        EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::record_corrupt) << what;
    });
}

TEST_F(FileDamage, TicketsOfAnEarlierBootDoNoHarmWhateverTheyContain) {
    const auto as = Credentials::random();
    static_cast<void>(granted(*store_, acquire_of("x", as, 1s)));
    Acquire waiting = acquire_of("x", Credentials::random());
    waiting.ticket = ttl(10s);
    EXPECT_EQ(refused(*store_, waiting), Errc::lock_conflict);
    // A power cut can leave the file empty, because tickets are not synced.
    const auto ticket = std::filesystem::directory_iterator(folder_of("x") / "queue")->path();
    write_file(ticket, "");
    clock_.reboot();
    clock_.advance(2s);
    EXPECT_EQ(granted(*store_, acquire_of("x", Credentials::random())).lock.waiters, 0U);
}

}  // namespace
}  // namespace holdfast::stores::file
