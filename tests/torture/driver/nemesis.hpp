#pragma once

#include "holdfast/store.hpp"
#include "torture/client/recorder.hpp"
#include "torture/driver/choices.hpp"
#include "torture/driver/crew.hpp"
#include "torture/driver/stage.hpp"

#include <functional>
#include <map>
#include <set>

namespace torture {

/// Does to clients and store what the seed says, and writes it into the history.
class Nemesis {
public:
    /// `store` is only looked at. All must outlive it.
    Nemesis(const Options& options, Stage& stage, Crew& crew, holdfast::Store& store, Recorder& recorder);

    /// Until the time is over or the rounds are done. Afterwards everything runs again.
    void rage();

private:
    /// Whether there was somebody to harm.
    [[nodiscard]] bool inflict(const Choice& choice);
    [[nodiscard]] bool restore(const Choice& choice);
    /// One that `holdfast run` is at work in.
    [[nodiscard]] bool harm_supervisor(const Choice& choice);
    [[nodiscard]] std::size_t victim_of(const Choice& choice) const;
    void record(const std::string& fault, const std::string& victim, std::int64_t begun, std::int64_t copied = 0);
    /// Sleeps, and continues processes that have been stopped long enough.
    void rest(std::chrono::milliseconds time);
    void resume_due(std::chrono::steady_clock::time_point now);

    const Options& options_;
    Stage& stage_;
    Crew& crew_;
    holdfast::Store& store_;
    Recorder& recorder_;
    std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> due_{};
    /// Clients of which a process of the supervisor is stopped. Nothing else happens to them: one of the two must be
    /// able to end the command.
    std::set<std::string> harmed_{};
    bool harms_inner_ = false;
};

}  // namespace torture
