// Adds 1 to a counter by reading and writing it, under a lock; and stops itself in between, now and then, for longer
// than its lease lasts. `fence_subject fenced|asserted|unguarded STORE DATABASE ROUNDS SEED`. It prints a line for each
// increment that the database acknowledged, and `maybe` where nobody knows.
#include "holdfast/fence.hpp"
#include "holdfast/open.hpp"
#include "sql/session.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <utility>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

struct Job {
    std::string mode{};
    std::string database{};
    std::mt19937_64 random{};
    /// Half of the processes pause in their first round, so that no run is without a pause.
    bool pauses_now = false;

    [[nodiscard]] bool pauses() { return std::exchange(pauses_now, false) || random() % 4 == 0; }
};

constexpr auto read_counter = "SELECT v FROM counter";

std::string write_counter(const std::string& seen) {
    return fmt::format("UPDATE counter SET v = {}", std::stoll(seen) + 1);
}

/// What a user's program in any language does: it asks the fence as the first statement of its transaction.
std::string assertion(SqlDialect dialect, const FenceClaim& claim) {
    const std::string values =
        fmt::format("('{}', {}, '{}')", claim.name.text(), claim.token.value, claim.lock_id.text());
    switch (dialect) {
        case SqlDialect::sqlite: return "INSERT INTO holdfast_assert (name, token, lock_id) VALUES " + values;
        case SqlDialect::postgres: return "SELECT holdfast_assert" + values;
        case SqlDialect::mysql: break;
    }
    return "CALL holdfast_assert" + values;
}

enum class Ending { acknowledged, refused, unknown };

/// Reads, pauses perhaps, and writes, on a connection that knows nothing of the hold.
Ending increment(sql::Session& session, Job& job, const FenceClaim& claim) {
    const auto run = [&](std::string text) {
        return session.run({.text = std::move(text), .values = {}}, Deadline::in(host_clock(), 30s));
    };
    const auto seen = run(read_counter);
    if (!seen) return Ending::refused;
    if (job.pauses()) std::raise(SIGSTOP);
    if (!run(session.dialect() == SqlDialect::sqlite ? "BEGIN IMMEDIATE" : "BEGIN")) return Ending::refused;
    const bool passed = job.mode == "unguarded" || run(assertion(session.dialect(), claim));
    if (!passed || !run(write_counter(*seen->rows.at(0).at(0)))) {
        (void)run("ROLLBACK");
        return Ending::refused;
    }
    const auto committed = run("COMMIT");
    if (committed) return Ending::acknowledged;
    return committed.error().kind == sql::ErrorClass::connection_lost ? Ending::unknown : Ending::refused;
}

/// The same through the library.
Ending increment(FencedDatabase& database, Job& job) {
    const auto seen = database.run(read_counter);
    if (!seen) return Ending::refused;
    if (job.pauses()) std::raise(SIGSTOP);
    if (!database.begin()) return Ending::refused;
    // Not with a file: nobody could go on, nor end the transaction.
    if (!job.database.starts_with("sqlite:") && job.random() % 8 == 0) std::raise(SIGSTOP);
    if (!database.run(write_counter(*seen->rows.at(0).at(0)))) return Ending::refused;
    const auto committed = database.commit();
    if (committed) return Ending::acknowledged;
    return committed.error().code == Errc::outcome_unknown ? Ending::unknown : Ending::refused;
}

Ending round(Store& store, const LockName& name, Job& job) {
    HoldOptions options{.ttl = *Ttl::of(300ms)};
    options.wait = 60s;
    const auto held = hold(store, name, options);
    if (!held) return Ending::refused;
    const auto claim = claim_of(*held);
    if (!claim) return Ending::refused;
    if (job.mode == "unguarded") {
        const auto session = sql::open_session(job.database, sql::IfAbsent::refuse, host_clock(), Deadline::never());
        return session ? increment(**session, job, *claim) : Ending::refused;
    }
    auto database = FencedDatabase::seal(job.database, *claim);
    if (!database) return Ending::refused;
    if (job.mode == "fenced") return increment(*database, job);
    const auto session = sql::open_session(job.database, sql::IfAbsent::refuse, host_clock(), Deadline::never());
    return session ? increment(**session, job, *claim) : Ending::refused;
}

int work(std::span<char* const> args) {
    Job job{.mode = args[1], .database = args[3]};
    const int rounds = std::stoi(args[4]);
    const auto seed = std::stoull(args[5]);
    job.random.seed(seed);
    job.pauses_now = seed % 2 == 0;
    const auto store = open_store(args[2]);
    const auto name = LockName::parse("counter");
    if (!store || !name) return 1;
    for (int done = 0; done < rounds;) {
        const Ending result = round(**store, *name, job);
        if (result == Ending::refused) continue;
        std::puts(result == Ending::acknowledged ? "done" : "maybe");
        std::fflush(stdout);
        ++done;
    }
    return 0;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::work({argv, static_cast<std::size_t>(argc)}); }
