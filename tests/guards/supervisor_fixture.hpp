#pragma once

#include "client/faulty_store.hpp"
#include "guards/run/spawn.hpp"
#include "guards/run/supervisor.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"
#include "support/time_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::run {

using namespace holdfast::tests;
using namespace std::chrono_literals;

/// These tests send SIGHUP, which a program under nohup inherits as ignored.
inline const auto inherited_hangup = std::signal(SIGHUP, SIG_DFL);

/// Ends this program when a test takes far too long: SIGALRM, which does so elsewhere, is blocked here.
class TimeLimit {
    std::jthread thread_{[](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any end;
        end.wait_for(lock, stop, 3 * time_limit, [] { return false; });
        if (!stop.stop_requested()) std::_Exit(2);
    }};
};

/// A folder in which a script says how far it is, by the files that it makes.
class Scripts : public testing::Test {
protected:
    /// A loop at the end of a script: ends by itself long before a test does.
    static constexpr const char* live = "; i=0; while [ $i -lt 500 ]; do sleep .02; i=$((i+1)); done; exit 98";

    /// Stops the script. The file `ready` says that it is stopped.
    static constexpr const char* stop =
        "(until grep -q '^State:.T' /proc/$$/status; do sleep .02; done; : >ready) & kill -STOP $$";
    /// In a process that a script leaves behind: waits until the script has ended and was waited for.
    static constexpr const char* alone = "while kill -0 $$ 2>/dev/null; do sleep .02; done; : >ready";

    [[nodiscard]] std::vector<std::string> script(const std::string& text) const {
        return {"/bin/sh", "-c", "cd '" + folder_.path().string() + "'; " + text};
    }
    [[nodiscard]] bool exists(const std::string& file) const { return std::filesystem::exists(folder_.path() / file); }
    /// Whether `file` is made in time. Not fatal: the test goes on, to let the script end.
    bool awaits(const std::string& file) const {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (!exists(file) && !end.passed(host_clock())) std::this_thread::sleep_for(2ms);
        EXPECT_TRUE(exists(file)) << file;
        return exists(file);
    }
    void make(const std::string& file) const { std::ofstream(folder_.path() / file); }
    /// The process whose first thread has ended, of a subject that behaves `headless` here; 0 if it never comes.
    [[nodiscard]] pid_t headless() const {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (!end.passed(host_clock())) {
            for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
                std::string stat;
                std::getline(std::ifstream("/proc/" + entry.path().filename().string() + "/stat"), stat);
                if (stat.contains(") Z ")) return std::stoi(stat);
            }
            std::this_thread::sleep_for(2ms);
        }
        ADD_FAILURE() << "nobody's first thread has ended";
        return 0;
    }

    Signals signals_;  ///< First, so that every thread has its signals blocked.
    const TimeLimit limit_;
    TempFolder folder_;
};

/// The inner process's end of a chain of which `outer` is the other end.
inline OuterLink make_link(base::Fd& outer) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    outer = base::Fd(ends[0]);
    return {base::Fd(ends[1]), must(share_state()), getpgrp()};
}

class Supervision : public Scripts {
protected:
    [[nodiscard]] HoldOptions lasting_for(std::chrono::milliseconds ttl) const {
        HoldOptions options;
        options.ttl = lasting(ttl);
        options.renew_interval = std::min<std::chrono::milliseconds>(ttl / 10, 50ms);
        options.renew_from = RenewFrom::the_call;
        return options;
    }
    [[nodiscard]] Job job_of(const std::string& text, std::chrono::milliseconds grace) const {
        Job job;
        job.command = script(text);
        job.environment = {"PATH=/usr/bin:/bin"};
        job.grace = grace;
        return job;
    }
    /// Supervises `job` under the lock while `meanwhile` happens.
    Verdict run(const Job& job, HoldOptions options, const std::function<void()>& meanwhile = [] {}) {
        options.time_to_stop = job.grace;
        Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
        const std::jthread other(meanwhile);
        Verdict verdict = supervise(job, &guarded, signals_, host_clock());
        lost_ = guarded.group.loss().has_value();
        store_.heal();
        return verdict;
    }
    LockStatus look() { return must(inner_->inspect(name_, Deadline::in(host_clock(), 10s))); }
    void take_away() {
        must(inner_->apply_one(Break{name_, look().lease->lock_id, "operator", "stuck"}, Deadline::never()));
    }

    /// As the death of the outer process.
    void break_link() { outer_end_.reset(); }

    base::Fd outer_end_;  ///< The outer process's end of the chain is the test's.
    OuterLink link_ = make_link(outer_end_);
    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("deploy/web");
    bool lost_ = false;  ///< Whether the last run lost its hold.
};

}  // namespace holdfast::guards::run
