// Goal: a request that is refused because the disk is full or a quota is used up says so, and that nothing was changed.
// A disk that fails leaves doubt, and that is told, too. Method: strace has the writes of one Acquire fail, one after
// the other.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

class FullDisk : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(FullDisk, IsNamedAndNothingWasChanged) {
    if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    const auto& [scheme, error] = GetParam();
    const TempFolder folder;
    const std::string url = url_in(folder.path(), scheme);
    must(open_shared(url)->apply_one(by_bob(lock("bystander"), 1h), patient()));
    int refused = 0;
    // Enough to come from the index of SQLite's log to the log itself.
    for (int number = 1; number <= 12; ++number) {
        const LockName name = lock("target-" + std::to_string(number));
        const Ending ending =
            run_injected({"acquire", url, name, Credentials::random()}, {"pwrite64", number}, "error=" + error);
        ASSERT_TRUE(ending.answer);
        if (ending.answer->granted) continue;
        ++refused;
        EXPECT_EQ(ending.answer->code, "E_STORE_UNAVAILABLE") << ending.answer->message;
        EXPECT_THAT(ending.answer->message, AnyOf(HasSubstr("disk is full"), HasSubstr("quota")));
        EXPECT_EQ(must(open_shared(url)->inspect(name, patient())).seq, 0U);
    }
    EXPECT_GT(refused, 0) << "no fault ever struck";
}

INSTANTIATE_TEST_SUITE_P(Stores, FullDisk,
                         testing::Combine(testing::ValuesIn(file_schemes()), testing::Values("ENOSPC", "EDQUOT")),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

// The new record can be in place although the disk has reported an error.
TEST(FailedRename, OfTheRecordLeavesTheOutcomeUnknownUnlessItSurelyDidNothing) {
    if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    const auto code_after = [](const std::string& error) {
        const TempFolder folder;
        const std::string url = url_in(folder.path(), "file");
        const Acquire held = by_alice(lock("target"), 1h);
        must(open_shared(url)->apply_one(held, patient()));
        const Call renewal{"renew", url, held.name, held.as};
        const auto calls = calls_on(folder.path(), renewal);
        const auto rename =
            std::ranges::find_if(calls, [](const NthCall& call) { return call.syscall.starts_with("rename"); });
        if (rename == calls.end()) return std::string("nothing is renamed");
        const Ending ending = run_injected(renewal, *rename, "error=" + error);
        return ending.answer ? ending.answer->code : std::string("no answer");
    };
    EXPECT_EQ(code_after("EIO"), "E_OUTCOME_UNKNOWN");
    EXPECT_EQ(code_after("ENOSPC"), "E_STORE_UNAVAILABLE");
}

}  // namespace
}  // namespace holdfast::tests
