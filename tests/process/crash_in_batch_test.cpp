// Goal: a batch that gives one lock back and takes another unless the first is held never leaves both held, whatever
// system call its process dies at or sees fail. Method: as in crash_at_syscall_test.cpp.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Exchange {
    std::string name;
    std::string given_back;       ///< Its name sorts before or behind that of the other: stores write in that order.
    bool somebody_waits = false;  ///< For the lock that is given back, so that it is handed on and the other refused.
};

void PrintTo(const Exchange& exchange, std::ostream* out) { *out << exchange.name; }

/// Which store, and what is exchanged there.
using ExchangeOn = std::tuple<std::string, Exchange>;

class CrashInBatch : public testing::TestWithParam<ExchangeOn> {
protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
        const auto store = open_shared(url_in(original_.path(), scheme()));
        // Both were used before, so that their next records replace others.
        for (const LockName& name : {given_back_, taken_}) {
            const Acquire earlier = by_bob(name, 1h);
            must(store->apply_one(earlier, patient()));
            must(store->apply_one(release(earlier), patient()));
        }
        Acquire held = by_alice(given_back_, 1h);
        held.as = as_;
        must(store->apply_one(held, patient()));
        if (exchange().somebody_waits) {
            EXPECT_THAT(store->apply_one(waiter_, patient()), RefusedWith(Errc::lock_conflict));
        }
    }

    [[nodiscard]] const std::string& scheme() const { return std::get<0>(GetParam()); }
    [[nodiscard]] const Exchange& exchange() const { return std::get<1>(GetParam()); }
    [[nodiscard]] Call call_in(const fs::path& folder) const {
        return {"exchange:" + given_back_.text(), url_in(folder, scheme()), taken_, as_};
    }
    void copy_to(const fs::path& folder) const {
        fs::copy(original_.path(), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    /// Without those that change nothing in the store.
    [[nodiscard]] std::vector<NthCall> calls() const {
        const TempFolder folder;
        copy_to(folder.path());
        auto calls = calls_on(folder.path(), call_in(folder.path()));
        std::erase_if(calls, [](const NthCall& call) { return call.syscall == "fcntl" || call.syscall == "close"; });
        return calls;
    }

    Ending fault(const NthCall& at, const std::string& what) const {
        SCOPED_TRACE(fmt::format("{}: {} with {} at {} #{}", scheme(), exchange().name, what, at.syscall, at.number));
        const TempFolder folder;
        copy_to(folder.path());
        Ending ending = run_injected(call_in(folder.path()), at, what);
        without_exceptions([&] { examine(folder.path(), ending); });
        return ending;
    }

private:
    void examine(const fs::path& folder, const Ending& ending) const {
        const auto store = open_shared(url_in(folder, scheme()));
        const LockStatus given_back = sound_status(*store, given_back_);
        const LockStatus taken = sound_status(*store, taken_);
        const bool is_given_back = given_back.state == LockState::free || given_back.lease->lock_id != as_.lock_id;
        const bool is_taken = taken.state == LockState::held;
        EXPECT_FALSE(given_back.state == LockState::held && is_taken) << "both are held";
        if (ending.answer && ending.answer->granted) {
            EXPECT_TRUE(is_given_back) << "acknowledged, but not there";
        }
        if (ending.answer && !ending.answer->granted && ending.answer->code != "E_OUTCOME_UNKNOWN") {
            EXPECT_FALSE(is_given_back || is_taken) << ending.answer->code << ", but something was changed";
        }
        // A client without an answer repeats the whole batch.
        Acquire take = by_alice(taken_, 1h);
        take.as = as_;
        take.unless_held = {given_back_};
        const auto again = store->apply(std::vector<Request>{Release{given_back_, as_}, take}, patient());
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_NE(must(store->inspect(taken_, patient())).state, must(store->inspect(given_back_, patient())).state)
            << "one is held and the other free, whoever came first";
    }

    TempFolder original_;
    const LockName taken_ = lock("middle");
    const LockName given_back_ = lock(exchange().given_back);
    const Acquire waiter_ = queued(by_carol(given_back_, 1h), 1h);
    const Credentials as_ = Credentials::random();
};

TEST_P(CrashInBatch, KilledAtAnyCallItNeverLeavesBothLocksHeld) {
    int killed = 0;
    for (const NthCall& at : calls()) {
        if (fault(at, "signal=KILL").exit == Exit{.signal = SIGKILL}) ++killed;
        if (HasFailure()) break;
    }
    EXPECT_GT(killed, 0) << "no fault ever struck";
}

TEST_P(CrashInBatch, WithAnyCallFailingItNeverLeavesBothLocksHeld) {
    int refused = 0;
    for (const NthCall& at : calls()) {
        const Ending ending = fault(at, "error=ENOSPC");
        if (HasFailure()) return;
        if (!ending.answer || !ending.answer->granted) ++refused;
    }
    EXPECT_GT(refused, 0) << "no fault ever struck";
}

INSTANTIATE_TEST_SUITE_P(Stores, CrashInBatch,
                         testing::Values(ExchangeOn{"file", {"GivenBackFirst", "early"}},
                                         ExchangeOn{"file", {"GivenBackLast", "xlate"}},
                                         ExchangeOn{"file", {"HandedOn", "xlate", true}},
                                         ExchangeOn{"sqlite", {"GivenBackLast", "xlate"}}),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace holdfast::tests
