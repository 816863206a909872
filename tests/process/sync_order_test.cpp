// Goal: no answer leaves before the disk has what it speaks of; a kill does not show that, only a power cut
// would. Method: the order of system calls, as strace saw it.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using Kinds = std::set<std::string>;

const Kinds syncs{"fsync", "fdatasync"};
const Kinds renames{"rename", "renameat", "renameat2"};

/// The calls of one Acquire in a store that is there, up to its answer.
std::vector<NthCall> calls_before_answer(const std::string& scheme) {
    const TempFolder folder;
    const std::string url = url_in(folder.path(), scheme);
    must(open_shared(url)->apply_one(by_bob(lock("bystander"), 1h), patient()));
    auto calls = calls_on(folder.path(), {"acquire", url, lock("target"), Credentials::random()});
    // Stores write at a place that they name; only the answer is a plain write.
    const auto answer = std::ranges::find(calls, "write", &NthCall::syscall);
    if (answer == calls.end()) throw std::runtime_error("no answer in the trace");
    calls.erase(answer, calls.end());
    return calls;
}

/// Where the last call of these kinds is, counted from 1; 0 if there is none.
std::ptrdiff_t last(const std::vector<NthCall>& calls, const Kinds& kinds) {
    const auto found =
        std::find_if(calls.rbegin(), calls.rend(), [&](const NthCall& call) { return kinds.contains(call.syscall); });
    return std::distance(found, calls.rend());
}

/// How often something is forced to the disk before the record gets its name.
std::ptrdiff_t syncs_before_record(const Call& call, const TempFolder& folder) {
    auto calls = calls_on(folder.path(), call);
    calls.resize(static_cast<std::size_t>(last(calls, renames)));
    return std::ranges::count_if(calls, [](const NthCall& made) { return syncs.contains(made.syscall); });
}

class SyncOrder : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    }
};

TEST_P(SyncOrder, NoAnswerLeavesBeforeTheDiskHasIt) {
    const auto calls = calls_before_answer(GetParam());
    Kinds changes = renames;
    changes.insert("pwrite64");
    ASSERT_GT(last(calls, changes), 0);
    EXPECT_GT(last(calls, syncs), last(calls, changes));
}

INSTANTIATE_TEST_SUITE_P(Stores, SyncOrder, testing::ValuesIn(file_schemes()),
                         [](const auto& test) { return test.param; });

// Otherwise a power cut could keep the record that has let go of its events, and lose the file that they moved to.
TEST(SyncOrderOfFiles, ANewAuditFileHasItsNameOnTheDiskBeforeTheRecordLetsGoOfItsEvents) {
    if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    const TempFolder folder;
    const std::string url = url_in(folder.path(), "file");
    const Acquire held = by_alice(lock("target"), 1h);
    // As many as a record keeps.
    for (int event = 0; event < 16; ++event) must(open_shared(url)->apply_one(held, patient()));
    EXPECT_EQ(syncs_before_record({"renew", url, lock("target"), held.as}, folder), 3)
        << "of the audit file, of the folder that has its name, and of the record";
}

// The rest of a log that is cut moves to a file with another name, and the record counts on that file.
TEST(SyncOrderOfFiles, TheRestOfAPrunedLogHasItsNameOnTheDiskBeforeTheRecordCountsOnIt) {
    if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    const TempFolder folder;
    const std::string url = url_in(folder.path(), "file");
    const Acquire held = by_alice(lock("target"), 1h);
    // The first sixteen are in the log, of which some stay, and the record has room for one more.
    for (int event = 0; event < 20; ++event) must(open_shared(url)->apply_one(held, patient()));
    EXPECT_EQ(syncs_before_record({"prune", url, lock("target"), held.as}, folder), 3)
        << "of the new audit file, of the folder that has its name, and of the record";
}

// SQLite renames nothing.
TEST(SyncOrderOfFiles, NoFileGetsItsNameBeforeTheDiskHasItsContent) {
    if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    auto calls = calls_before_answer("file");
    ASSERT_GT(last(calls, renames), 0);
    calls.resize(static_cast<std::size_t>(last(calls, renames)));
    EXPECT_GT(last(calls, syncs), last(calls, {"pwrite64"}));
}

}  // namespace
}  // namespace holdfast::tests
