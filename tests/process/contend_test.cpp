// Goal: real processes exclude each other. Method: every contender is a process that opens the store by
// itself and starts when the pipe that is its standard input ends, so that all of them start at once.
#include "process/answer_line.hpp"
#include "process/shared_store.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class Contend : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] const std::string& url() const { return url_; }

    /// `count` processes ask for `name` at once; what they were told.
    [[nodiscard]] std::vector<AnswerLine> contend(const LockName& name, int count) const {
        // Before the fork: a server that is not running yet must be the parent's.
        const std::string place = url();
        std::vector<Process> processes;
        for (int i = 0; i < count; ++i)
            processes.push_back(Process::fork([&] {
                wait_for_end_of_input();
                print_now(to_line(open_shared(place)->apply_one(by("contender", name, 1h), patient())));
                return 0;
            }));
        for (Process& process : processes) process.close_input();
        std::vector<AnswerLine> answers;
        for (Process& process : processes) {
            const std::string said = process.read_all();
            const auto answer = parse_line(said);
            const Exit end = process.wait();
            if (!answer || end != Exit{.status = 0})
                throw std::runtime_error(GetParam() + ": a contender said \"" + said + "\"");
            answers.push_back(*answer);
        }
        return answers;
    }

    /// Exactly one was granted; all others were told its lock_id.
    static void expect_one_winner(const std::vector<AnswerLine>& answers, const LockStatus& status) {
        ASSERT_TRUE(status.lease);
        int won = 0;
        for (const AnswerLine& answer : answers) {
            won += answer.granted ? 1 : 0;
            if (!answer.granted) {
                EXPECT_EQ(answer.code, "E_LOCK_CONFLICT");
            }
            EXPECT_EQ(answer.lock_id, status.lease->lock_id.text());
            EXPECT_EQ(answer.token, status.token.value);
        }
        EXPECT_EQ(won, 1);
    }

private:
    const TempFolder folder_;
    /// Known before anybody forks: a server that has to be started belongs to all of them.
    const std::string url_ = url_in(folder_.path(), GetParam());
};

TEST_P(Contend, OneOfFiftyProcessesWinsAndTheOthersAreToldWhoItIs) {
    for (int round = 0; round < rounds_on(GetParam(), 100) && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << GetParam() << " round " << round);
        const LockName name = lock("round " + std::to_string(round));
        const auto answers = contend(name, 50);
        expect_one_winner(answers, sound_status(*open_shared(url()), name));
    }
}

TEST_P(Contend, FiftyFirstUsesAtOnceMakeOneStore) {
    for (int round = 0; round < rounds_on(GetParam(), 10) && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << GetParam() << " round " << round);
        const TempFolder fresh;
        const std::string place = url_in(fresh.path(), GetParam());
        std::vector<Process> processes;
        for (int i = 0; i < 50; ++i)
            processes.push_back(Process::fork([&] {
                wait_for_end_of_input();
                const auto store = open_shared(place);
                must(store->apply({}, patient()));
                print_now(store->info().store_id.value().text());
                return 0;
            }));
        for (Process& process : processes) process.close_input();
        std::vector<std::string> ids;
        for (Process& process : processes) {
            ids.push_back(process.read_all());
            EXPECT_EQ(process.wait(), Exit{.status = 0});
        }
        EXPECT_THAT(ids, testing::Each(open_shared(place)->info().store_id.value().text()));
    }
}

TEST_P(Contend, OneOfTwoStealersOfAnExpiredLeaseWins) {
    const int rounds = rounds_on(GetParam(), 50);
    const auto name_of_round = [](int round) { return lock("stolen " + std::to_string(round)); };
    std::vector<FencingToken> before;
    {
        const auto store = open_shared(url());
        for (int round = 0; round < rounds; ++round)
            before.push_back(must(store->apply_one(by_alice(name_of_round(round), 50ms), patient())).lock.token);
        // The newest lease is the last to run out.
        while (must(store->inspect(name_of_round(rounds - 1), patient())).state != LockState::expired)
            std::this_thread::sleep_for(10ms);
    }
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << GetParam() << " round " << round);
        const auto answers = contend(name_of_round(round), 2);
        const LockStatus status = sound_status(*open_shared(url()), name_of_round(round));
        expect_one_winner(answers, status);
        EXPECT_GT(status.token, before[static_cast<std::size_t>(round)]);
        EXPECT_EQ(status.seq, 2U);
    }
}

INSTANTIATE_TEST_SUITE_P(Stores, Contend, testing::ValuesIn(shared_schemes()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
