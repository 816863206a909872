#pragma once

#include "holdfast/hold.hpp"
#include "torture/client/guarded_register.hpp"
#include "torture/client/recorder.hpp"
#include "torture/client/recording_store.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace torture {

struct WorkerSettings {
    std::filesystem::path folder{};  ///< Where history and registers are.
    holdfast::Ttl ttl;
    Guard guard = Guard::on;
    std::uint64_t seed = 0;
    std::vector<std::string> workloads{};
};

/// The workloads, by name: `single`, `many`, `queue`, `handed`, `several`, `register`, `run`.
[[nodiscard]] std::vector<std::string> all_workloads();
/// The locks that they use.
[[nodiscard]] std::vector<std::string> locks_of(const std::string& workload);

/// One client of a store, which behaves as clients do and records what it did and what it believed.
class Worker {
public:
    /// Both must outlive it.
    Worker(holdfast::Store& store, Recorder& recorder, const WorkerSettings& settings);

    /// One random piece of work. False: the store could not be reached, which is worth a pause.
    bool turn();
    /// Takes every lock of its workloads once, however long the others take: nothing may be stuck for ever.
    void last_turns();

private:
    void single();
    void many();
    void queue();
    void handed();
    void several();
    void guarded();
    void run();

    /// One of the locks of a workload.
    [[nodiscard]] std::string any(const std::string& workload);
    [[nodiscard]] holdfast::HoldOptions options(std::chrono::milliseconds wait) const;
    /// Takes the lock, stays a while, and gives it back.
    void hold_for_a_while(const std::string& name, std::chrono::milliseconds wait);
    /// Records that it trusts the lease now; or that it is over.
    bool trusts(const holdfast::Hold& hold);
    bool trusts(const std::string& name, const holdfast::LockId& id, holdfast::FencingToken token, std::int64_t until);
    void stay(const holdfast::Hold& hold, std::chrono::milliseconds time);
    void change_register(const holdfast::Hold& hold);
    void break_somebodys(const std::string& name);
    void force(const std::string& name);
    GuardedRegister& register_of(const std::string& name);
    void note(const holdfast::Error& error);

    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    [[nodiscard]] bool one_in(std::uint64_t times) { return below(times) == 0; }

    RecordingStore store_;
    Recorder& recorder_;
    WorkerSettings settings_;
    std::mt19937_64 random_;
    std::map<std::string, GuardedRegister> registers_{};
    bool reached_ = true;
};

}  // namespace torture
