// Goal: a process killed at any moment leaves a store that works, and loses nothing that it was told.
// Method: a child acquires, renews and releases in a loop and reports each answer; the parent kills it at a
// random moment and looks. One client at a time, so at most one change can be there that nobody heard of.
#include "process/answer_line.hpp"
#include "process/shared_store.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto short_ttl = 50ms;

/// What the child does until it is killed. It may wait for a lease that its predecessor left behind.
[[noreturn]] void work_for_ever(const std::string& url, const LockName& name) {
    const auto store = open_shared(url);
    print_now("ready\n");
    const auto report = [&](const Request& request) {
        const Reply reply = store->apply_one(request, patient());
        print_now(to_line(reply));
        return reply.has_value();
    };
    while (true) {
        const Acquire mine = by("victim", name, short_ttl);
        if (!report(mine)) continue;
        report(renewal(mine));
        report(renewal(mine));
        report(release(mine));
    }
}

/// The answers that the victim got before it was killed.
std::vector<AnswerLine> answers_in(const std::string& output) {
    std::vector<AnswerLine> answers;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);)
        if (const auto answer = parse_line(line)) answers.push_back(*answer);
    return answers;
}

class Kill : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] const std::string& url() const { return url_; }

    /// Starts a victim on `name`, lets it say `lines` lines and live on for `life`; what it reported.
    [[nodiscard]] std::vector<AnswerLine> kill_one(const LockName& name, int lines,
                                                   std::chrono::microseconds life) const {
        // Before the fork: a server that is not running yet must be the parent's.
        const std::string place = url();
        Process victim = Process::fork([&]() -> int { work_for_ever(place, name); });
        std::string said;
        for (int line = 0; line < lines; ++line) said += victim.read_line() + "\n";
        std::this_thread::sleep_for(life);
        victim.send(SIGKILL);
        said += victim.read_all();
        EXPECT_EQ(victim.wait(), Exit{.signal = SIGKILL});
        return answers_in(said);
    }

    /// The lock as it is now. What a victim of long ago had sent may have reached a server after it was looked at.
    [[nodiscard]] LockStatus settled(const LockStatus& before) const {
        if (before.seq == 0) return before;
        LockStatus now = sound_status(*open_shared(url()), before.name);
        EXPECT_GE(now.seq, before.seq);
        EXPECT_LE(now.seq, before.seq + 1);
        return now;
    }

    /// What must hold after any crash; the lock as it is then.
    static void examine(Store& store, const LockName& name, const std::vector<AnswerLine>& answers,
                        LockStatus& before) {
        const LockStatus after = sound_status(store, name);
        std::uint64_t seq = before.seq;
        std::uint64_t token = before.token.value;
        for (const AnswerLine& answer : answers) {
            if (!answer.granted) {
                EXPECT_THAT(answer.code, testing::AnyOf("E_LOCK_CONFLICT", "E_LOCK_EXPIRED"));
                continue;
            }
            EXPECT_EQ(answer.seq, seq + 1) << "the victim was alone";
            EXPECT_GE(answer.token, token);
            seq = answer.seq;
            token = answer.token;
        }
        EXPECT_GE(after.seq, seq) << "an acknowledged change is gone";
        EXPECT_LE(after.seq, seq + 1) << "more changed than one request that was not answered";
        EXPECT_GE(after.token.value, token);
        before = after;
    }

    /// The next client gets the lock, or hears of a lease that is about to run out.
    static void expect_usable(Store& store, LockStatus& before) {
        const Acquire next = by("next", before.name, short_ttl);
        const Reply reply = store.apply_one(next, patient());
        if (!reply) {
            ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
            EXPECT_LE(reply.error().retry_after.value(), short_ttl + resolution_of(GetParam()));
            // A server may have finished what the victim sent after we looked.
            before = sound_status(store, before.name);
            return;
        }
        EXPECT_GT(reply->lock.token, before.token);
        before = must(store.apply_one(release(next), patient())).lock;
    }

private:
    const TempFolder folder_;
    /// Known before anybody forks: a server that has to be started belongs to all of them.
    const std::string url_ = url_in(folder_.path(), GetParam());
};

TEST_P(Kill, AProcessKilledAtAnyMomentLeavesASoundStore) {
    std::mt19937_64 random(seed_of("kill/" + GetParam()));
    std::vector<LockStatus> locks;
    for (int i = 0; i < 20; ++i) locks.push_back({.name = lock("lock " + std::to_string(i))});
    int answered = 0;
    int held = 0;
    const int rounds = rounds_on(GetParam(), 500);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << GetParam() << " round " << round);
        LockStatus& known = locks[static_cast<std::size_t>(round) % locks.size()];
        // Some are killed while they open the store, or create it, the others after a few answers.
        const int lines = round < 10 ? 0 : static_cast<int>(random() % 7);
        const std::chrono::microseconds life(random() % 5'000);
        known = settled(known);
        const auto answers = kill_one(known.name, lines, life);
        const auto store = open_shared(url());
        examine(*store, known.name, answers, known);
        answered += answers.empty() ? 0 : 1;
        held += known.state == LockState::held ? 1 : 0;
        expect_usable(*store, known);
    }
    fmt::print("{}: {} victims killed, {} after their first answer, {} while they held the lock\n", GetParam(), rounds,
               answered, held);
    EXPECT_GT(answered, 0) << "the victims never came to work";
}

INSTANTIATE_TEST_SUITE_P(Stores, Kill, testing::ValuesIn(shared_schemes()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
