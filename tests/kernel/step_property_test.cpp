// Goal: no sequence of requests breaks the protocol. Method: RapidCheck plays random histories of a few
// clients over a few locks and looks at the invariants of invariants.cpp after every step; a failing
// history is shrunk until only the acts that matter are left.
//
// The seed is printed at the start. `HOLDFAST_SEED=<seed>` plays the same histories again, and the
// `reproduce=` text that RapidCheck prints beside a failure plays only the shrunk one: `RC_PARAMS="reproduce=…"`.
// `HOLDFAST_TEST_SCALE=10` plays ten times as many.

#include "kernel/history.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <set>

namespace holdfast::tests {
namespace {

constexpr int histories = 2000;
constexpr std::size_t acts_per_history = 240;

/// Tells RapidCheck the seed and the number of histories, unless somebody gave it RC_PARAMS.
void configure() {
    const std::uint64_t seed = seed_of("kernel histories");
    const std::string parameters = fmt::format("seed={} max_success={}", seed, scaled(histories));
    setenv("RC_PARAMS", parameters.c_str(), 0);
    std::cout << "RC_PARAMS=\"" << std::getenv("RC_PARAMS") << "\"" << std::endl;
}

rc::Gen<Act> any_act() {
    // The whole range at every size: small codes would mean few moves and no time passing.
    return rc::gen::map(rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40)), &Act::from);
}

/// Plays `acts`; returns what broke. Counts the moves that led to a granted request.
std::string play(const std::vector<Act>& acts, std::set<Move>& granted_moves) {
    LittleStore store;
    Cast cast(store);
    for (const Act& act : acts) {
        store.elapse(act.pause);
        const auto request = cast.request_of(act);
        if (!request) continue;
        const std::size_t events = store.shelf(name_of(*request)).events.size();
        if (const std::string broken = broken_by(store, *request); !broken.empty()) return broken;
        if (store.shelf(name_of(*request)).events.size() > events) granted_moves.insert(act.move);
    }
    for (std::uint32_t i = 0; i < locks; ++i) {
        const LockName& name = cast.name(i);
        const auto verified = verify_chain(store.shelf(name).events, store.status(name));
        if (!verified) return verified.error().message;
    }
    return "";
}

TEST(StepPropertyTest, NoHistoryBreaksTheProtocol) {
    configure();
    std::set<Move> granted_moves;
    int played = 0;
    const bool held = rc::check("no history breaks the protocol", [&] {
        const auto acts = *rc::gen::container<std::vector<Act>>(acts_per_history, any_act());
        ++played;
        const std::string broken = play(acts, granted_moves);
        if (!broken.empty()) RC_FAIL(broken);
    });
    ASSERT_TRUE(held);

    // A property that never reaches a state proves nothing about it. A replayed failure is one history only.
    if (played < 50) return;
    using enum Move;
    for (const Move move : {take, queue, repeat, renew, revive, release, cancel, transfer, break_seen, ask, approve,
                            deny, approve_as_holder})
        EXPECT_TRUE(granted_moves.contains(move)) << "no history changed anything by move " << static_cast<int>(move);
    for (const Move move : {idle, check, approve_as_stranger}) EXPECT_FALSE(granted_moves.contains(move));
}

}  // namespace
}  // namespace holdfast::tests
