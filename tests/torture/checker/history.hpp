#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a torture run recorded, as plain values. The checker shares nothing with the product, not even headers:
/// a mistake that both made would not be seen.
///
/// A history is a file of JSON lines. `e` says what a line is:
/// - `run`: `seed`, `store`, `require` (faults that must have bitten), `control` (the fence was off, to show that it
/// matters)
/// - `begin`, before a call: `p` process, `i` its number there, `op`, `l` lock, `t`; and, where they make sense, `id`
///   (lock_id), `tok` (acted under), `to` (lock_id of the new holder), `ticket` (ms), `n` (of a write), `base` (version
///   read)
/// - `handed` is an `op` that always ends with `ok`: a queued waiter found that the lock is its own
/// - `supervise` is such an `op` as well: a `holdfast run`, from its start to its end
/// - `end`, after it: `p`, `i`, `t`, `r` (`ok`, `refused`, `lost`, `unknown`), `why`; `tok` granted, `rs` renew_seq,
/// `v` version
/// - `believe`: `p`, `l`, `id`, `tok`, `t`, `until`: the holder trusts its lease now, and until then
/// - `lost`: `p`, `l`, `id`, `t`: the holder knows that it is over
/// - `life`, written by a process under a lease: `p` (whose supervisor started it), `l`, `id`, `tok`, `t`, `what`
///   (`begin`, `beat`, `end`)
/// - `fault`: `kind`, `t`, `t1`, `p` (victim), `from` (of a restore: when the copy was made), `ms` (of a delay, one
/// way); `heal`: `t`, no faults any more
/// - `audit`: `l`, `seq`, `kind`, `tok`, `id`, `from` (lock_id that lost it); `state`: `l`, `seq`, `tok`, `id`, `chain`
/// - `journal`, written by the guarded resource in the step it tells of: `l`, `kind` (`write`, `seal`), `v`, `tok`,
/// `id`,
///   `n`, `base`
///
/// Times are nanoseconds of one CLOCK_BOOTTIME, which is also the clock of the holders' deadlines.
namespace checker {

using Nanos = std::int64_t;
using Token = std::uint64_t;
inline constexpr Nanos never = std::numeric_limits<Nanos>::max();

/// `unknown` may have happened at any time after it began, also long after, or not at all.
enum class Ending { ok, refused, unknown };

struct Op {
    std::size_t line = 0;
    std::size_t end_line = 0;
    std::string process{};
    std::string kind{};
    std::string lock{};
    std::string id{};
    std::string to{};
    std::string why{};
    Token token = 0;
    Token granted = 0;
    Nanos begun = 0;
    Nanos ended = never;     ///< Never, too, where the outcome is unknown: nothing follows from when that came back.
    Nanos returned = never;  ///< When its caller could go on.
    Ending ending = Ending::unknown;
    Nanos ticket = 0;
    std::uint64_t renewals = 0;
    std::uint64_t number = 0;
    std::uint64_t base = 0;
    std::uint64_t version = 0;
};

struct Belief {
    std::size_t line = 0;
    std::string process{};
    std::string lock{};
    std::string id{};
    Token token = 0;
    Nanos at = 0;
    Nanos until = 0;  ///< Of a line `lost`: the same as `at`.
    bool lost = false;
};

/// Of all processes that a supervisor's command started under one lease.
struct Life {
    std::size_t line = 0;       ///< The first that it wrote,
    std::size_t seen_line = 0;  ///< and the last.
    std::string process{};
    std::string id{};
    Token token = 0;
    Nanos begun = never;
    Nanos seen = 0;      ///< It lived at least until then.
    bool ended = false;  ///< By itself.
};

struct Audit {
    std::size_t line = 0;
    std::string lock{};
    std::string kind{};
    std::string id{};
    std::string from{};
    Token token = 0;
    std::uint64_t seq = 0;
};

struct State {
    std::size_t line = 0;
    std::string lock{};
    std::string id{};
    std::string chain{};
    Token token = 0;
    std::uint64_t seq = 0;
};

struct Journal {
    std::size_t line = 0;
    std::string lock{};
    std::string kind{};
    std::string id{};
    Token token = 0;
    std::uint64_t version = 0;
    std::uint64_t number = 0;
    std::uint64_t base = 0;
};

struct Fault {
    std::size_t line = 0;
    std::string kind{};
    std::string process{};
    Nanos begun = 0;
    Nanos ended = 0;
    Nanos from = 0;
    Nanos delay = 0;
};

/// What happened to one lock. Locks are independent of each other, so each is judged alone.
struct LockHistory {
    std::string name{};
    std::vector<Op> ops{};  ///< By the time when they began.
    std::vector<Belief> beliefs{};
    std::map<std::string, Life> lives{};  ///< By lock_id.
    std::vector<Audit> audit{};
    std::vector<Journal> journal{};
    std::optional<State> state{};
};

struct History {
    std::uint64_t seed = 0;
    std::string store{};
    std::vector<std::string> required{};
    bool control = false;
    std::map<std::string, LockHistory> locks{};
    std::vector<Fault> faults{};
    std::optional<Nanos> healed{};
    std::vector<std::string> lines{};  ///< As they were, for the report.
};

/// Throws std::runtime_error, with the number of the line, where it cannot be read: half a history proves nothing.
[[nodiscard]] History parse(std::string_view text);

}  // namespace checker
