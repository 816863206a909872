// Two applications start at once, each wants to migrate, and the migration needs a lock in MariaDB and one in
// Redis: exactly one runs it, the other waits its turn and finds nothing to do; nobody keeps half of the locks.
#include "cli/sandbox.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/store_harness.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using cli_test::Args;
using cli_test::Ended;
using cli_test::eventually;
using cli_test::Running;

/// Says in `log` what it did, and whether another one was alive when it began. Slow: it goes on until there is a file
/// `go`.
constexpr std::string_view migration = R"(
if [ -e done ]; then echo nothing >> log; exit 0; fi
if [ -e pid ] && grep -q '^State:.*[RSDTt]' "/proc/$(cat pid)/status" 2>/dev/null; then echo twice >> log; exit 1; fi
echo $$ > pid
echo began >> log
until [ -e go ]; do sleep 0.02; done
echo ended >> log
: > done
)";

class TwoStores : public testing::Test {
protected:
    TwoStores() { box_.write(box_.work / "migrate.sh", migration); }

    [[nodiscard]] Args command(const Args& more = {}) const {
        // Named in the wrong order: in which order they are taken is not for the caller to say.
        Args args{"run", "-s", redis_->url(), "-s", mysql_->url(), "--ttl", "2s", "migrate/prod"};
        args.insert(args.end(), more.begin(), more.end());
        args.insert(args.end(), {"--", "/bin/sh", "migrate.sh"});
        return args;
    }
    [[nodiscard]] Running start() { return box_.start(command({"--wait", "1m"})); }

    [[nodiscard]] std::vector<std::string> log() const {
        std::ifstream in(box_.work / "log");
        std::vector<std::string> lines;
        for (std::string line; std::getline(in, line);) lines.push_back(line);
        return lines;
    }
    void await_log(std::size_t lines) const {
        ASSERT_TRUE(eventually([&] { return log().size() >= lines; })) << "the migration did not get that far";
    }
    void let_it_end() const { box_.write(box_.work / "go", ""); }

    [[nodiscard]] static LockState state_in(StoreHarness& harness) {
        const auto store = must(open_store(harness.url()));
        return must(store->inspect(lock("migrate/prod"), Deadline::in(host_clock(), 10s))).state;
    }

    cli_test::Sandbox box_;
    std::unique_ptr<StoreHarness> mysql_ = must(start_mysql());
    std::unique_ptr<StoreHarness> redis_ = must(start_redis());
};

TEST_F(TwoStores, ExactlyOneMigratesAndTheOtherFindsNothingToDo) {
    Running first = start();
    Running second = start();
    await_log(1);
    let_it_end();
    EXPECT_EQ(first.wait().status, 0);
    EXPECT_EQ(second.wait().status, 0);
    EXPECT_THAT(log(), testing::ElementsAre("began", "ended", "nothing"));
    EXPECT_EQ(state_in(*mysql_), LockState::free);
    EXPECT_EQ(state_in(*redis_), LockState::free);
}

TEST_F(TwoStores, ACallerThatGetsOnlyOneOfTheLocksGivesItBack) {
    for (StoreHarness* taken : {mysql_.get(), redis_.get()}) {
        const auto store = must(open_store(taken->url()));
        const Acquire other = by_alice(lock("migrate/prod"), 1h);
        must(store->apply_one(other, Deadline::in(host_clock(), 10s)));
        const Ended refused = box_.run(command({"--no-wait"}));
        EXPECT_EQ(refused.status, 75) << refused.err;
        EXPECT_THAT(log(), testing::IsEmpty()) << "the migration was not started";
        StoreHarness& free = taken == mysql_.get() ? *redis_ : *mysql_;
        EXPECT_EQ(state_in(free), LockState::free) << "nothing is kept of what was taken before the refusal";
        must(store->apply_one(release(other), Deadline::in(host_clock(), 10s)));
    }
}

TEST_F(TwoStores, WhenTheWinnerIsKilledTheOtherTakesOver) {
    Running first = start();
    await_log(1);
    Running second = start();
    first.signal(SIGKILL);
    // The inner process ends the orphaned migration and gives its leases back; only then the second begins.
    await_log(2);
    let_it_end();
    EXPECT_EQ(second.wait().status, 0);
    EXPECT_THAT(log(), testing::ElementsAre("began", "began", "ended"));
}

TEST_F(TwoStores, TheCommandIsToldBothLeasesAndACommandInsideJoinsBoth) {
    // The stores' ids are known only when the servers were asked.
    const Args both{"-s", redis_->url(), "-s", mysql_->url()};
    Args args{"run", "x", "--json", "--ttl", "20s", both[0], both[1], both[2], both[3], "--", "/bin/sh", "-c"};
    args.push_back("echo \"$HOLDFAST_LEASES\" > leases; exec '" + box_.program +
                   "' run x --json \"$@\" -- true > inner");
    args.emplace_back("sh");
    args.insert(args.end(), both.begin(), both.end());
    const Ended outer = box_.run(args);
    ASSERT_EQ(outer.status, 0) << outer.err;
    const auto text_of = [&](const char* file) {
        std::ifstream in(box_.work / file);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const auto leases = cli_test::Document::parse(text_of("leases"));
    const auto inner = cli_test::Document::parse(text_of("inner"));
    ASSERT_TRUE(leases && inner) << text_of("leases") << text_of("inner");
    for (const std::string place : {"/0", "/1"}) {
        const std::string id = outer.json().text("/locks" + place + "/store_id");
        EXPECT_EQ(id.size(), 36U) << id;
        EXPECT_EQ(leases->text(place + "/store_id"), id);
        EXPECT_EQ(inner->text("/locks" + place + "/store_id"), id);
        EXPECT_TRUE(inner->yes("/locks" + place + "/joined"));
    }
    EXPECT_THAT(outer.err, testing::Not(testing::HasSubstr("ignored")));
}

TEST(OneServer, ACommandInsideJoinsTheLease) {
    cli_test::Sandbox box;
    for (const auto& start : {start_postgres, start_mysql, start_redis, start_etcd}) {
        const auto harness = must(start());
        SCOPED_TRACE(harness->url());
        const std::string script = "'" + box.program + "' run x --json --unless-held y -- true";
        const Ended ended = box.run({"run", "x", "--", "/bin/sh", "-c", script}, {{"HOLDFAST_STORE", harness->url()}});
        ASSERT_EQ(ended.status, 0) << ended.err;
        EXPECT_TRUE(ended.json().yes("/locks/0/joined"));
        EXPECT_EQ(ended.json().text("/locks/0/store_id").size(), 36U);
    }
}

}  // namespace
}  // namespace holdfast::tests
