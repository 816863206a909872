#include "torture/driver/nemesis.hpp"

#include "torture/client/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

}  // namespace

Nemesis::Nemesis(const Options& options, Stage& stage, Crew& crew, holdfast::Store& store, Recorder& recorder)
    : options_(options), stage_(stage), crew_(crew), store_(store), recorder_(recorder) {}

void Nemesis::rage() {
    Choices choices(options_);
    const auto end = steady_clock::now() + options_.time;
    // A fault that found nobody to harm is no round; most find somebody.
    std::uint64_t tries = 0;
    for (std::uint64_t round = 1;
         options_.rounds ? round <= *options_.rounds && tries < 4 * *options_.rounds : steady_clock::now() < end;) {
        const Choice choice = choices.next();
        fmt::print("fault {}: after {} ms {} (client {}, lock {}, {} ms)\n", ++tries, choice.pause.count(),
                   choice.fault, choice.place, choice.lock, choice.length.count());
        rest(choice.pause);
        if (inflict(choice)) ++round;
        crew_.expect_all_alive();
    }
    while (!due_.empty()) rest(10ms);
    recorder_.line(fmt::format(R"({{"e":"heal","t":{}}})", now_ns()));
}

bool Nemesis::inflict(const Choice& choice) {
    if (choice.fault == "restore") return restore(choice);
    const std::int64_t begun = now_ns();
    if (choice.fault == "kill") {
        const std::size_t victim = victim_of(choice);
        const std::string name = crew_.name_of(victim);
        if (harmed_.contains(name)) return false;
        crew_.replace(victim);
        record("kill", name, begun);
        return true;
    }
    if (choice.fault == "stop") {
        // Some must go on: only running clients notice that others are stopped.
        const std::size_t victim = victim_of(choice);
        if (crew_.is_stopped(victim) || crew_.stopped() * 3 >= crew_.size()) return false;
        if (harmed_.contains(crew_.name_of(victim))) return false;
        crew_.stop(victim);
        due_.emplace(steady_clock::now() + choice.length, [this, begun, name = crew_.name_of(victim)] {
            const auto place = crew_.place_of(name);
            if (!place) return;  // Killed in the meantime.
            record("stop", name, begun);
            crew_.resume(*place);
        });
        return true;
    }
    if (choice.fault.starts_with("supervisor_")) return harm_supervisor(choice);
    stage_.begin(choice);
    if (choice.fault != "clock") rest(choice.length);
    stage_.finish(choice);
    recorder_.line(fmt::format(R"({{"e":"fault","kind":"{}","t":{},"t1":{},"ms":{}}})", choice.fault, begun, now_ns(),
                               choice.fault == "delay" ? choice.delay.count() : 0));
    return true;
}

bool Nemesis::harm_supervisor(const Choice& choice) {
    const std::size_t place = victim_of(choice);
    if (crew_.is_stopped(place) || harmed_.contains(crew_.name_of(place))) return false;
    if (crew_.has_broken_chain(place)) return false;
    // Either process of it, in turn: while the outer one is stopped the lease is renewed, and nobody notices.
    harms_inner_ = !harms_inner_;
    const Crew::Link link = harms_inner_ ? Crew::Link::inner : Crew::Link::outer;
    auto supervisor = std::make_shared<holdfast::base::Fd>(crew_.supervisor_of(place, link));
    if (!*supervisor) return false;
    // It may end at any moment, and then there is nobody to hear it.
    const auto send = [supervisor](int signal) {
        syscall(SYS_pidfd_send_signal, supervisor->get(), signal, nullptr, 0);
    };
    const std::int64_t begun = now_ns();
    const std::string name = crew_.name_of(place);
    if (choice.fault == "supervisor_kill") {
        send(SIGKILL);
        record(choice.fault, name, begun);
        return true;
    }
    send(SIGSTOP);
    harmed_.insert(name);
    due_.emplace(steady_clock::now() + choice.length, [this, begun, name, send, fault = choice.fault] {
        record(fault, name, begun);
        send(SIGCONT);
        harmed_.erase(name);
    });
    return true;
}

/// As `docs/reference/stores.md` says: everybody stops, the backup is put in place, everybody starts.
bool Nemesis::restore(const Choice& choice) {
    while (!harmed_.empty()) rest(10ms);
    const std::int64_t copied = now_ns();
    std::vector<std::size_t> running;
    for (std::size_t place = 0; place < crew_.size(); ++place)
        if (!crew_.is_stopped(place)) running.push_back(place);
    for (const std::size_t place : running) crew_.stop(place);
    stage_.begin(choice);
    for (const std::size_t place : running) crew_.resume(place);
    rest(choice.length);
    const std::int64_t begun = now_ns();
    crew_.kill_all();
    stage_.finish(choice);
    record("restore", "", begun, copied);
    crew_.start_all();
    return true;
}

std::size_t Nemesis::victim_of(const Choice& choice) const {
    // From the chosen lock on, the first whose holder is at work.
    std::vector<std::string> locks = locks_of(choice.lock.substr(0, choice.lock.find('/')));
    std::ranges::rotate(locks, std::ranges::find(locks, choice.lock));
    for (const std::string& lock : locks) {
        const auto name = holdfast::LockName::parse(lock);
        const auto seen = store_.inspect(*name, holdfast::Deadline::in(holdfast::host_clock(), 200ms));
        const auto place = seen && seen->lease ? crew_.place_of(seen->lease->holder.text) : std::nullopt;
        if (place && !crew_.is_stopped(*place)) return *place;
    }
    return choice.place;
}

void Nemesis::record(const std::string& fault, const std::string& victim, std::int64_t begun, std::int64_t copied) {
    recorder_.line(fmt::format(R"({{"e":"fault","kind":"{}","p":"{}","t":{},"t1":{},"from":{}}})", fault, victim, begun,
                               now_ns(), copied));
}

void Nemesis::rest(milliseconds time) {
    const auto end = steady_clock::now() + time;
    for (auto now = steady_clock::now(); now < end; now = steady_clock::now()) {
        const auto next = due_.empty() ? end : std::min(end, due_.begin()->first);
        if (next > now) std::this_thread::sleep_for(next - now);
        resume_due(steady_clock::now());
    }
}

void Nemesis::resume_due(steady_clock::time_point now) {
    while (!due_.empty() && due_.begin()->first <= now) {
        due_.begin()->second();
        due_.erase(due_.begin());
    }
}

}  // namespace torture
