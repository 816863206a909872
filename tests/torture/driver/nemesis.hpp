#pragma once

#include "holdfast/store.hpp"
#include "torture/client/recorder.hpp"
#include "torture/driver/crew.hpp"
#include "torture/driver/options.hpp"
#include "torture/driver/stage.hpp"

#include <functional>
#include <map>
#include <random>

namespace torture {

/// One thing that goes wrong. Drawn from the seed alone, so that the same seed gives the same sequence.
struct Choice {
    std::string fault{};
    std::chrono::milliseconds pause{};  ///< Before it.
    std::size_t place{};                ///< The victim, where nobody holds a lock like `lock`.
    std::string lock{};                 ///< Its holder is the victim, or that of one like it.
    std::chrono::milliseconds length{};
    std::chrono::milliseconds step{};
};

/// The sequence of a seed, without end.
class Choices {
public:
    explicit Choices(const Options& options);
    [[nodiscard]] Choice next();

private:
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    const Options& options_;
    std::vector<std::string> weighted_{};
    std::mt19937_64 random_;
};

/// Does to clients and store what the seed says, and writes it into the history.
class Nemesis {
public:
    /// `store` is only looked at. All must outlive it.
    Nemesis(const Options& options, Stage& stage, Crew& crew, holdfast::Store& store, Recorder& recorder);

    /// Until the time is over or the rounds are done. Afterwards everything runs again.
    void rage();

private:
    void inflict(const Choice& choice);
    void restore(const Choice& choice);
    [[nodiscard]] std::size_t victim_of(const Choice& choice) const;
    void record(const std::string& fault, const std::string& victim, std::int64_t begun, std::int64_t copied = 0);
    /// Sleeps, and wakes up who has been stopped long enough.
    void rest(std::chrono::milliseconds time);
    void resume_due(std::chrono::steady_clock::time_point now);

    const Options& options_;
    Stage& stage_;
    Crew& crew_;
    holdfast::Store& store_;
    Recorder& recorder_;
    std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> due_{};
};

}  // namespace torture
