// Goal: whatever system call a process dies at, or sees fail, the store has the old state or the new one,
// and nothing that was acknowledged is missing. Method: record the calls of one operation with strace, then
// repeat the operation once for every call, on a fresh copy of the store, with a fault at that call.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// What the store is like before the operation, and which operation it is.
struct Scenario {
    std::string name;
    std::string what;
    bool store_exists = true;
    bool held = false;
    int earlier_events = 2;  ///< Enough of them make the file store move some out of its record.
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

std::vector<Scenario> scenarios() {
    return {
        {.name = "FirstAcquireOfTheStore", .what = "acquire", .store_exists = false},
        {.name = "AcquireOfAFreeLock", .what = "acquire"},
        {.name = "AcquireAfterManyEvents", .what = "acquire", .earlier_events = 16},
        {.name = "Renew", .what = "renew", .held = true},
        {.name = "RenewAfterManyEvents", .what = "renew", .held = true, .earlier_events = 31},
        {.name = "Release", .what = "release", .held = true},
        {.name = "Prune", .what = "prune", .held = true, .earlier_events = 8},
        {.name = "PruneAfterManyEvents", .what = "prune", .held = true, .earlier_events = 31},
    };
}

const LockName& target() {
    static const LockName name = lock("target");
    return name;
}

const LockName& bystander() {
    static const LockName name = lock("bystander");
    return name;
}

LockStatus timeless(LockStatus status) {
    status.as_of = {};
    return status;
}

using Parameters = std::tuple<std::string, Scenario>;

class CrashAtSyscall : public testing::TestWithParam<Parameters> {
protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
        if (!scenario().store_exists) return;
        const auto store = open_shared(url_in(original_.path(), scheme()));
        must(store->apply_one(by_bob(bystander(), 1h), patient()));
        const Acquire earlier = by_alice(target(), 1h);
        must(store->apply_one(earlier, patient()));
        for (int event = 2; event < scenario().earlier_events; ++event)
            must(store->apply_one(renewal(earlier), patient()));
        must(store->apply_one(release(earlier), patient()));
        Acquire mine = by_alice(target(), 1h);
        mine.as = as_;
        if (scenario().held) must(store->apply_one(mine, patient()));
        before_ = timeless(must(store->inspect(target(), patient())));
        bystander_before_ = timeless(must(store->inspect(bystander(), patient())));
    }

    [[nodiscard]] const std::string& scheme() const { return std::get<0>(GetParam()); }
    [[nodiscard]] const Scenario& scenario() const { return std::get<1>(GetParam()); }
    [[nodiscard]] Call call_in(const fs::path& folder) const {
        return {scenario().what, url_in(folder, scheme()), target(), as_};
    }

    /// A copy of the store as it was before the operation.
    void copy_to(const fs::path& folder) const {
        fs::copy(original_.path(), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }

    [[nodiscard]] std::vector<NthCall> calls() const {
        const TempFolder folder;
        copy_to(folder.path());
        return calls_on(folder.path(), call_in(folder.path()));
    }

    /// Runs the operation with a fault and looks at what is left.
    Ending fault(const NthCall& at, const std::string& what) const {
        SCOPED_TRACE(fmt::format("{}: {} with {} at {} #{}", scheme(), scenario().name, what, at.syscall, at.number));
        const TempFolder folder;
        copy_to(folder.path());
        Ending ending = run_injected(call_in(folder.path()), at, what);
        without_exceptions([&] { examine(folder.path(), ending); });
        return ending;
    }

private:
    [[nodiscard]] Request request() const {
        if (scenario().what == "renew") return Renew{target(), as_, lasting(1h)};
        if (scenario().what == "release") return Release{target(), as_};
        if (scenario().what == "prune") return Prune{target(), contender_prunes, "root"};
        Acquire acquire = by_alice(target(), 1h);
        acquire.as = as_;
        return acquire;
    }

    void expect_new_state(const LockStatus& status) const {
        EXPECT_EQ(status.seq, before_.seq + 1) << "one request makes one event";
        if (scenario().what == "release") {
            EXPECT_EQ(status.state, LockState::free);
            return;
        }
        if (scenario().what == "prune") {
            EXPECT_EQ(status.pruned_seq, std::min(contender_prunes, before_.seq - 1));
            EXPECT_EQ(status.lease, before_.lease);
        }
        ASSERT_TRUE(status.lease);
        EXPECT_EQ(status.lease->lock_id, as_.lock_id);
        EXPECT_EQ(status.lease->renew_seq, scenario().what == "renew" ? 1U : 0U);
        if (scenario().what == "acquire") {
            EXPECT_GT(status.token, before_.token);
        }
    }

    void examine(const fs::path& folder, const Ending& ending) const {
        const auto store = open_shared(url_in(folder, scheme()));
        const LockStatus status = timeless(sound_status(*store, target()));
        const bool changed = status != before_;
        if (changed) expect_new_state(status);
        if (scenario().store_exists) {
            EXPECT_EQ(timeless(sound_status(*store, bystander())), bystander_before_) << "a lock that nobody touched";
        }
        if (const auto& answer = ending.answer) {
            if (answer->granted) {
                EXPECT_TRUE(changed) << "acknowledged, but not there";
            }
            if (!answer->granted && answer->code != "E_OUTCOME_UNKNOWN") {
                EXPECT_FALSE(changed) << "refused with " << answer->code << ", but there: " << answer->message;
            }
        }
        expect_usable(*store, status.token);
    }

    /// The caller repeats what it never heard the answer of, and others see the result.
    void expect_usable(Store& store, FencingToken token) const {
        EXPECT_THAT(store.apply_one(request(), patient()), Granted());
        const Reply next = store.apply_one(by_carol(target()), patient());
        if (scenario().what == "release") {
            ASSERT_THAT(next, Granted());
            EXPECT_GT(next->lock.token, token);
        } else {
            EXPECT_THAT(next, RefusedWith(Errc::lock_conflict));
        }
        EXPECT_THAT(store.apply_one(by_carol(lock("new")), patient()), Granted());
    }

    TempFolder original_;
    Credentials as_ = Credentials::random();
    LockStatus before_{.name = target()};
    LockStatus bystander_before_{.name = bystander()};
};

TEST_P(CrashAtSyscall, KilledAtAnyCallItLeavesTheOldStateOrTheNew) {
    int killed = 0;
    const auto all = calls();
    for (const NthCall& at : all) {
        // The counter may be past the end: a run need not make exactly the calls of the one before.
        if (fault(at, "signal=KILL").exit == Exit{.signal = SIGKILL}) ++killed;
        if (HasFailure()) break;
    }
    fmt::print("{}: killed at {} of {} calls\n", scheme(), killed, all.size());
    EXPECT_GT(killed, 0) << "no fault ever struck";
}

TEST_P(CrashAtSyscall, AFailingCallIsNeverAcknowledgedAsSuccess) {
    const std::set<std::string> never_fails_alone{"fcntl", "close", "utimensat"};
    int refused = 0;
    int survived = 0;
    for (const NthCall& at : calls()) {
        if (never_fails_alone.contains(at.syscall)) continue;
        for (const char* error : {"error=EIO", "error=ENOSPC"}) {
            const Ending ending = fault(at, error);
            EXPECT_FALSE(ending.exit.signal) << "an error must not end the process";
            if (HasFailure()) return;
            (ending.answer && ending.answer->granted ? survived : refused)++;
        }
    }
    fmt::print("{}: {} faults were reported, {} did no harm\n", scheme(), refused, survived);
    EXPECT_GT(refused, 0) << "no fault ever struck";
}

INSTANTIATE_TEST_SUITE_P(Stores, CrashAtSyscall,
                         testing::Combine(testing::ValuesIn(file_schemes()), testing::ValuesIn(scenarios())),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace holdfast::tests
