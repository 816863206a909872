#pragma once

#include "support/process.hpp"
#include "torture/driver/options.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace torture {

/// The clients of a run: real processes that a nemesis kills and stops.
class Crew {
public:
    Crew(const Options& options, std::string url, std::filesystem::path folder);

    [[nodiscard]] std::size_t size() const { return members_.size(); }
    /// `c2.5`: the fifth process in the second place.
    [[nodiscard]] std::string name_of(std::size_t place) const;
    /// Whose place a name is; empty if its process is gone.
    [[nodiscard]] std::optional<std::size_t> place_of(const std::string& name) const;
    [[nodiscard]] bool is_stopped(std::size_t place) const { return members_[place].stopped; }
    [[nodiscard]] std::size_t stopped() const;

    /// SIGKILL, and a new process in its place.
    void replace(std::size_t place);
    /// SIGSTOP; returns when it has come to a halt.
    void stop(std::size_t place);
    void resume(std::size_t place);

    /// One of the two processes of the supervisor that a client has started, as a descriptor for signals. None: it has
    /// none at the moment.
    enum class Link { outer, inner };
    [[nodiscard]] holdfast::base::Fd supervisor_of(std::size_t place, Link link) const;
    /// One of the two is dead, or not there yet. The other one has to end the command, and must not be killed as well:
    /// nobody would be left.
    [[nodiscard]] bool has_broken_chain(std::size_t place) const;

    /// Returns when whatever clients have started is dead as well. Throws if that takes too long: the process that
    /// should end it has failed.
    void kill_all();
    void start_all();

    /// Throws if a client ended without being told to.
    void expect_all_alive();
    /// SIGTERM: everybody takes every lock once more. False: somebody did not come back in time, and was killed.
    [[nodiscard]] bool dismiss(std::chrono::seconds patience);

private:
    void await_whole_chain(std::size_t place) const;
    struct Member {
        std::optional<holdfast::tests::Process> process{};
        std::uint64_t generation = 0;
        bool stopped = false;
    };
    void start(std::size_t place);
    void kill(std::size_t place);
    void expect_nobody_alive() const;

    const Options& options_;
    std::string url_;
    std::filesystem::path folder_;
    std::vector<Member> members_;
};

}  // namespace torture
