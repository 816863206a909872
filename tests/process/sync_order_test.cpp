// Goal: no answer leaves before the disk has what it speaks of; a kill does not show that, only a power cut
// would. Method: the order of system calls, as strace saw it.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
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

class SyncOrder : public testing::TestWithParam<std::string> {};

TEST_P(SyncOrder, NoAnswerLeavesBeforeTheDiskHasIt) {
    const auto calls = calls_before_answer(GetParam());
    Kinds changes = renames;
    changes.insert("pwrite64");
    ASSERT_GT(last(calls, changes), 0);
    EXPECT_GT(last(calls, syncs), last(calls, changes));
}

INSTANTIATE_TEST_SUITE_P(Stores, SyncOrder, testing::ValuesIn(file_schemes()),
                         [](const auto& test) { return test.param; });

// SQLite renames nothing.
TEST(SyncOrderOfFiles, NoFileGetsItsNameBeforeTheDiskHasItsContent) {
    auto calls = calls_before_answer("file");
    ASSERT_GT(last(calls, renames), 0);
    calls.resize(static_cast<std::size_t>(last(calls, renames)));
    EXPECT_GT(last(calls, syncs), last(calls, {"pwrite64"}));
}

}  // namespace
}  // namespace holdfast::tests
