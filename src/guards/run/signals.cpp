#include "guards/run/signals.hpp"

#include "guards/run/chain.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <span>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

namespace holdfast::guards::run {
namespace {

constexpr std::array interesting{SIGCHLD, SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                 SIGALRM, SIGCONT, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};
constexpr std::array requests_to_end{SIGTERM, SIGINT, SIGHUP};

/// Signals that the caller ignores (nohup, a job in the background) stay ignored. If they were blocked, they would be
/// read from the descriptor.
bool is_ignored(int signal) {
    struct sigaction action{};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t not_ignored(std::span<const int> signals) {
    sigset_t set{};
    sigemptyset(&set);
    for (const int signal : signals)
        if (!is_ignored(signal)) sigaddset(&set, signal);
    return set;
}

}  // namespace

Signals::Signals(Take take) : take_(take) {
    sigset_t blocked{};
    sigfillset(&blocked);
    if (take == Take::requests_to_end) blocked = not_ignored(requests_to_end);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    if (take == Take::all) {
        // A parent may have left SIGCHLD ignored, and then children vanish without a status.
        struct sigaction fresh{};
        fresh.sa_handler = SIG_DFL;
        sigaction(SIGCHLD, &fresh, &child_before_);
    }
    const sigset_t wanted = take == Take::all ? not_ignored(interesting) : blocked;
    descriptor_ = base::Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() {
    if (take_ == Take::requests_to_end) {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        return;
    }
    // A signal that came too late for the child must not end this process before it has reported the child's status.
    // Nor may one that we do not read, such as SIGXFSZ of a store that could not write.
    sigset_t all{};
    sigfillset(&all);
    const timespec no_time{};
    while (sigtimedwait(&all, nullptr, &no_time) > 0) {
    }
    sigaction(SIGCHLD, &child_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::listen_to_children_only() {
    sigset_t wanted{};
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    // A new one: the old one is shared with the process that this one was forked from.
    descriptor_ = base::Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> Signals::next() const {
    signalfd_siginfo info{};
    if (read(descriptor_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

bool is_stop_signal(int signal) {
    constexpr std::array stops{SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    return std::ranges::find(stops, signal) != stops.end();
}

void stop_like_the_terminal(pid_t target) {
    sigset_t stop{};
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigset_t before{};
    pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    kill(target, SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StopListener::StopListener(int descriptor, std::function<std::optional<int>()> next, Second second,
                           std::stop_source source)
    : descriptor_(descriptor),
      second_(second),
      source_(std::move(source)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      next_(std::move(next)),
      thread_([this](const std::stop_token& end) { listen(end); }) {}

StopListener::StopListener(const Signals& signals, std::stop_source source)
    : StopListener(
          signals.descriptor(), [&signals] { return signals.next(); }, Second::ends_the_process, std::move(source)) {}

StopListener::StopListener(OuterLink& outer, std::stop_source source)
    : StopListener(
          outer.descriptor(),
          [&outer] {
              const auto signal = outer.next();
              return outer.is_broken() ? SIGKILL : signal;
          },
          Second::is_not_read, std::move(source)) {}

StopListener::~StopListener() { end(); }

void StopListener::listen(const std::stop_token& end) {
    while (!end.stop_requested()) {
        std::array ready{pollfd{descriptor_, POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
        if (poll(ready.data(), ready.size(), -1) <= 0 || ready[0].revents == 0) continue;
        read_signal();
        if (second_ == Second::is_not_read && source_.stop_requested()) return;
    }
}

void StopListener::read_signal() {
    {
        const std::scoped_lock lock(mutex_);
        if (heard_ != 0 && second_ == Second::is_not_read) return;
        // Others than stop signals mean nothing while there is no child. The death of the outer process is one.
        const std::optional<int> signal = next_();
        if (!signal || (!is_stop_signal(*signal) && *signal != SIGKILL)) return;
        if (heard_ != 0) _exit(128 + *signal);
        heard_ = *signal;
    }
    source_.request_stop();
}

int StopListener::heard() {
    {
        const std::scoped_lock lock(mutex_);
        if (heard_ != 0) return heard_;
    }
    pollfd ready{descriptor_, POLLIN, 0};
    if (poll(&ready, 1, 0) > 0) read_signal();
    const std::scoped_lock lock(mutex_);
    return heard_;
}

void StopListener::end() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    eventfd_write(wake_.get(), 1);
    thread_.join();
}

std::optional<int> StopListener::finish() {
    end();
    const std::scoped_lock lock(mutex_);
    return heard_ == 0 ? std::nullopt : std::optional<int>(heard_);
}

}  // namespace holdfast::guards::run
