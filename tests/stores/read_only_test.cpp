// Where nothing can be changed, locks and their history can be read all the same, and that they may be old is said.
// Replicas of Redis and read-only servers of MySQL are in the tests of these stores.
#include "holdfast/open.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

[[nodiscard]] Deadline soon() { return Deadline::in(host_clock(), 30s); }

TEST(ReadOnlyPostgres, AStreamingStandbyShowsLocksAndGrantsNone) {
    const auto primary = start_postgres_server();
    const auto store = must(open_store(postgres_url(primary->port())));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    const auto standby = start_postgres_standby(*primary);
    const FencingToken token = must(store->apply_one(by_bob(lock("y"), 1h), soon())).lock.token;

    const auto copy = must(open_store(postgres_url(standby->port())));
    for (const Deadline end = soon(); must(copy->inspect(lock("y"), soon())).token != token;) {
        ASSERT_FALSE(end.passed(host_clock())) << "the standby does not follow";
        std::this_thread::yield();
    }
    EXPECT_EQ(must(copy->inspect(lock("x"), soon())).lease->lock_id, alice.as.lock_id);
    EXPECT_EQ(must(copy->list({}, soon())).size(), 2U);
    EXPECT_EQ(must(copy->history({}, soon())).size(), 2U);
    EXPECT_TRUE(copy->info().may_be_stale);
    EXPECT_FALSE(store->info().may_be_stale);
    EXPECT_THAT(copy->apply_one(by_carol(lock("z")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(ByHand(standby->port())("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
}

/// The store in a folder, of which this process may then change nothing.
class ReadOnlyFiles : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::string url() const { return GetParam() + (folder_.path() / "store").string(); }
    [[nodiscard]] fs::path root() const { return folder_.path(); }
    void set_rights(fs::perms folders, fs::perms files) const {
        std::vector<fs::path> all;
        for (const auto& entry : fs::recursive_directory_iterator(root())) all.push_back(entry.path());
        for (const fs::path& path : all)
            if (!fs::is_directory(path)) fs::permissions(path, files);
        std::ranges::reverse(all);
        for (const fs::path& path : all)
            if (fs::is_directory(path)) fs::permissions(path, folders);
        fs::permissions(root(), folders);
    }
    void forbid() const { set_rights(fs::perms::owner_read | fs::perms::owner_exec, fs::perms::owner_read); }
    void allow() const {
        fs::permissions(root(), fs::perms::owner_all);
        set_rights(fs::perms::owner_all, fs::perms::owner_read | fs::perms::owner_write);
    }
    void expect_readable() const {
        const auto copy = must(open_store(url()));
        EXPECT_EQ(must(copy->inspect(lock("x"), soon())).state, LockState::held);
        EXPECT_EQ(must(copy->list({}, soon())).size(), 1U);
        EXPECT_EQ(must(copy->history({.name = lock("x")}, soon())).size(), 1U);
        EXPECT_TRUE(copy->info().may_be_stale);
        EXPECT_FALSE(copy->apply_one(by_bob(lock("y")), soon()));
        EXPECT_EQ(must(copy->list({.with_free = true}, soon())).size(), 1U);
    }

private:
    TempFolder folder_;
};

TEST_P(ReadOnlyFiles, WithoutTheRightToWriteAreRead) {
    const AsPlainUser plain(root());
    if (!plain) GTEST_SKIP() << not_here << "root cannot become another user";
    must(must(open_store(url()))->apply_one(by_alice(lock("x"), 1h), soon()));
    EXPECT_FALSE(must(open_store(url()))->info().may_be_stale);
    forbid();
    expect_readable();
    allow();
    EXPECT_THAT(must(open_store(url()))->apply_one(by_bob(lock("y")), soon()), Granted());
}

// What a writer has not moved out of SQLite's log yet is read, too.
TEST_P(ReadOnlyFiles, AreReadBesideAWriterThatOpenedThemBefore) {
    const AsPlainUser plain(root());
    if (!plain) GTEST_SKIP() << not_here << "root cannot become another user";
    const auto writer = must(open_store(url()));
    must(writer->apply_one(by_alice(lock("x"), 1h), soon()));
    forbid();
    expect_readable();
    allow();
}

INSTANTIATE_TEST_SUITE_P(Stores, ReadOnlyFiles, testing::Values("file:", "sqlite:"),
                         [](const auto& test) { return test.param.substr(0, test.param.size() - 1); });

}  // namespace
}  // namespace holdfast::tests
