#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace checker {
namespace {

/// When the supervisor of a child asked for the lock.
Nanos asked(const LockHistory& lock, const Life& life) {
    Nanos last = life.begun;
    for (const Op& op : lock.ops)
        if (op.kind == "supervise" && op.process == life.process && op.begun <= life.begun) last = op.begun;
    return last;
}

}  // namespace

void check_lives(const History& history, const LockHistory& lock, Verdict& verdict) {
    std::vector<Life> lives;
    for (const auto& [id, life] : lock.lives) lives.push_back(life);
    std::ranges::sort(lives, {}, &Life::begun);
    verdict.counts["leases with children"] += lives.size();
    const auto together = [&](const Life& first, Nanos moment, const std::string& whom, std::size_t line) {
        if (clock_moved_between(history, asked(lock, first), moment)) {
            ++verdict.counts["children together after the store's clock was moved"];
            return;
        }
        verdict.flag("C10",
                     fmt::format("{}: a child under token {} lived for {:.1f} ms beside {}", lock.name, first.token,
                                 static_cast<double>(first.seen - moment) / 1e6, whom),
                     first.seen_line, line);
    };
    const Life* longest = nullptr;
    for (const Life& life : lives) {
        if (longest != nullptr && life.begun <= longest->seen)
            together(*longest, life.begun, fmt::format("one under token {}", life.token), life.line);
        if (longest == nullptr || life.seen > longest->seen) longest = &life;
    }
    for (const Trust& trust : trusts_of(history, lock))
        for (const Life& life : lives)
            if (trust.id != life.id && trust.start <= life.seen && life.begun < trust.end)
                together(life, std::max(trust.start, life.begun), fmt::format("the holder of token {}", trust.token),
                         trust.line);
}

}  // namespace checker
