#pragma once

#include "history.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

/// The ten questions that every history must answer well.
namespace checker {

/// Two lines of the history that cannot both be right.
struct Violation {
    std::string check{};  ///< `C1` to `C10`.
    std::string what{};
    std::size_t first_line = 0;
    std::size_t second_line = 0;
};

struct Verdict {
    std::vector<Violation> violations{};
    std::map<std::string, std::uint64_t> counts{};       ///< Of what was seen, judged or excused.
    std::map<std::string, std::vector<double>> times{};  ///< Milliseconds, for percentiles.
    std::map<std::string, std::uint64_t> injected{};     ///< Faults by kind,
    std::map<std::string, std::uint64_t> bitten{};       ///< and those that met somebody at work.
    std::vector<std::string> missing{};                  ///< Required, and never bit.
    std::set<std::string> left_out{};                    ///< Checks that say nothing.

    void flag(const std::string& check, std::string what, std::size_t first_line, std::size_t second_line) {
        if (left_out.contains(check)) return;
        violations.push_back({check, std::move(what), first_line, second_line});
    }
};

/// One lease: the calls that brought it, joined by lock_id.
struct Grant {
    std::string id{};
    Token token = 0;
    Nanos begun = 0;  ///< It was granted after this,
    Nanos ended = 0;  ///< and before this.
    const Op* op = nullptr;
};
/// Acknowledged grants of a lock, each once.
[[nodiscard]] std::vector<Grant> grants_of(const LockHistory& lock);

/// From when until when a holder trusted its lease.
struct Trust {
    std::string id{};
    std::string process{};
    Token token = 0;
    Nanos start = never;
    Nanos end = 0;
    Nanos asked = never;  ///< When it first asked for the lock.
    std::size_t line = 0;
};
/// By the time when they began.
[[nodiscard]] std::vector<Trust> trusts_of(const History& history, const LockHistory& lock);

/// Whether the store's clock was moved between two moments, so that it could not know better.
[[nodiscard]] bool clock_moved_between(const History& history, Nanos first, Nanos second);

/// C1: a token belongs to one lease. C2: it rises in real time and in the audit.
/// C8: nobody renews what a newer grant has replaced, and renewals are counted.
void check_tokens(const LockHistory& lock, Verdict& verdict);
/// C3: holders do not believe in their leases at the same time.
void check_beliefs(const History& history, const LockHistory& lock, Verdict& verdict);
/// C4: the audit has what was acknowledged and nothing else.
void check_audit(const History& history, const LockHistory& lock, Verdict& verdict);
/// C5: the guarded register is linearizable. C6: it refuses the stale.
void check_register(const LockHistory& lock, Verdict& verdict);
/// C7: after the faults everybody gets a turn, and nobody overtakes the queue.
void check_liveness(const History& history, const LockHistory& lock, Verdict& verdict);
/// C9: what was broken stays broken.
void check_breaks(const LockHistory& lock, Verdict& verdict);
/// C10: a process under a lease is dead before any process runs under the next one, or believes in it.
void check_lives(const History& history, const LockHistory& lock, Verdict& verdict);
/// Whether the faults met anybody.
void count_bites(const History& history, Verdict& verdict);

/// `left_out` is for the checker's own tests: what passes without a check shows what that check is for.
[[nodiscard]] Verdict judge(const History& history, std::set<std::string> left_out = {});

}  // namespace checker
