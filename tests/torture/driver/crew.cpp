#include "torture/driver/crew.hpp"

#include "support/servers/server.hpp"
#include "torture/client/supervised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>

namespace torture {

using holdfast::tests::Exit;
using holdfast::tests::Process;
using namespace std::chrono_literals;

namespace {

/// What the main thread of a process has started; 0: nothing that is still there.
pid_t child_of(pid_t parent) {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
    pid_t child = 0;
    children >> child;
    return child;
}

/// The inner process of a supervisor, and not dead.
bool is_inner(pid_t pid) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string number;
    std::string name;
    char state = 'X';
    stat >> number >> name >> state;
    return name == "(holdfast-inner)" && state != 'Z' && state != 'X';
}

}  // namespace

Crew::Crew(const Options& options, std::string url, std::filesystem::path folder)
    : options_(options), url_(std::move(url)), folder_(std::move(folder)), members_(options.clients) {
    start_all();
}

std::string Crew::name_of(std::size_t place) const { return fmt::format("c{}.{}", place, members_[place].generation); }

std::optional<std::size_t> Crew::place_of(const std::string& name) const {
    for (std::size_t place = 0; place < members_.size(); ++place)
        if (name_of(place) == name) return place;
    return std::nullopt;
}

std::size_t Crew::stopped() const {
    return static_cast<std::size_t>(std::ranges::count(members_, true, &Member::stopped));
}

void Crew::start(std::size_t place) {
    Member& member = members_[place];
    ++member.generation;
    // Every process has its own seed, which follows from that of the run.
    const std::uint64_t seed = options_.seed * 1'000'003 + place * 10'007 + member.generation;
    std::vector<std::string> command{program("torture_client"),
                                     url_,
                                     name_of(place),
                                     folder_.string(),
                                     std::to_string(options_.ttl.count()),
                                     std::to_string(seed),
                                     options_.guard ? "on" : "off"};
    command.insert(command.end(), options_.workloads.begin(), options_.workloads.end());
    member.process.emplace(Process::run(command));
    if (member.process->read_line() != "ready") throw std::runtime_error(name_of(place) + " did not start");
}

void Crew::kill(std::size_t place) {
    Member& member = members_[place];
    // With the client dies the outer process of its supervisor. The inner one must be able to end the command.
    if (!member.stopped) await_whole_chain(place);
    if (member.stopped)
        if (const holdfast::base::Fd inner = supervisor_of(place, Link::inner))
            syscall(SYS_pidfd_send_signal, inner.get(), SIGCONT, nullptr, 0);
    member.process->send(SIGKILL);
    if (member.process->wait() != Exit{.signal = SIGKILL})
        throw std::runtime_error(name_of(place) + " ended before it was killed");
    member.process.reset();
    member.stopped = false;
}

bool Crew::has_broken_chain(std::size_t place) const {
    const pid_t outer = child_of(members_[place].process->pid());
    // Without an inner process, what it had started is the child of the outer one.
    return outer != 0 && !is_inner(child_of(outer));
}

void Crew::await_whole_chain(std::size_t place) const {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (has_broken_chain(place)) {
        if (std::chrono::steady_clock::now() > deadline)
            throw std::runtime_error(name_of(place) + ": what is left of a supervisor does not end");
        std::this_thread::sleep_for(1ms);
    }
}

void Crew::replace(std::size_t place) {
    kill(place);
    start(place);
}

void Crew::stop(std::size_t place) {
    members_[place].process->send(SIGSTOP);
    siginfo_t info{};
    // A signal is sent in no time, but taken when its process gets to it.
    if (waitid(P_PID, static_cast<id_t>(members_[place].process->pid()), &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
        throw std::system_error(errno, std::generic_category(), "waitid");
    members_[place].stopped = true;
    // With the inner process of its supervisor, which uses the store as well. The outer one has to end the command in
    // time. A client that stands still reaps nobody, so the number of its child stays.
    const holdfast::base::Fd inner = supervisor_of(place, Link::inner);
    if (!inner) return;
    const pid_t number = child_of(child_of(members_[place].process->pid()));
    syscall(SYS_pidfd_send_signal, inner.get(), SIGSTOP, nullptr, 0);
    while (number != 0 && !holdfast::tests::has_halted(number)) std::this_thread::sleep_for(1ms);
}

void Crew::resume(std::size_t place) {
    if (const holdfast::base::Fd inner = supervisor_of(place, Link::inner))
        syscall(SYS_pidfd_send_signal, inner.get(), SIGCONT, nullptr, 0);
    members_[place].process->send(SIGCONT);
    members_[place].stopped = false;
}

holdfast::base::Fd Crew::supervisor_of(std::size_t place, Link link) const {
    const pid_t client = members_[place].process->pid();
    const auto find = [&] { return link == Link::outer ? child_of(client) : child_of(child_of(client)); };
    const pid_t pid = find();
    if (pid == 0) return {};
    holdfast::base::Fd supervisor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    // Still the same process when it was opened?
    return find() == pid ? std::move(supervisor) : holdfast::base::Fd{};
}

void Crew::expect_nobody_alive() const {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (anybody_lives((folder_ / "alive").string())) {
        if (std::chrono::steady_clock::now() > deadline)
            throw std::runtime_error("what a supervisor had started lives on without it");
        std::this_thread::sleep_for(5ms);
    }
}

void Crew::kill_all() {
    for (std::size_t place = 0; place < members_.size(); ++place) kill(place);
    expect_nobody_alive();
}

void Crew::start_all() {
    for (std::size_t place = 0; place < members_.size(); ++place) start(place);
}

void Crew::expect_all_alive() {
    for (std::size_t place = 0; place < members_.size(); ++place) {
        siginfo_t info{};
        const int status =
            waitid(P_PID, static_cast<id_t>(members_[place].process->pid()), &info, WEXITED | WNOHANG | WNOWAIT);
        if (status != 0 || info.si_pid != 0)
            throw std::runtime_error(fmt::format("{} ended by itself, with {}", name_of(place), info.si_status));
    }
}

bool Crew::dismiss(std::chrono::seconds patience) {
    for (const Member& member : members_) member.process->send(SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    bool all = true;
    for (std::size_t place = 0; place < members_.size(); ++place) {
        Process& process = *members_[place].process;
        const holdfast::base::Fd watched(static_cast<int>(syscall(SYS_pidfd_open, process.pid(), 0)));
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        pollfd ended{watched.get(), POLLIN, 0};
        if (poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1) {
            if (const Exit end = process.wait(); end != Exit{.status = 0})
                throw std::runtime_error(fmt::format("{} ended with status {} or signal {}", name_of(place),
                                                     end.status.value_or(-1), end.signal.value_or(0)));
            members_[place].process.reset();
            continue;
        }
        all = false;
        kill(place);
    }
    expect_nobody_alive();
    return all;
}

}  // namespace torture
