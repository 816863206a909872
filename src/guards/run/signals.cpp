#include "guards/run/signals.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

namespace holdfast::guards::run {
namespace {

constexpr std::array interesting{SIGCHLD, SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                 SIGALRM, SIGCONT, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

/// What the caller told us to ignore (nohup, a job in the background) stays ignored: a blocked signal would be read
/// from the descriptor nevertheless.
bool is_ignored(int signal) {
    struct sigaction action{};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    // A parent may have left SIGCHLD ignored, and then children vanish without a status.
    struct sigaction fresh{};
    fresh.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &fresh, &child_before_);

    sigset_t wanted{};
    sigemptyset(&wanted);
    for (const int signal : interesting)
        if (!is_ignored(signal)) sigaddset(&wanted, signal);
    descriptor_ = base::Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() {
    // What came too late for the child must not end us instead, and with us its exit status. Nor may what we do not
    // listen to, such as SIGXFSZ of a store that could not write.
    sigset_t all{};
    sigfillset(&all);
    const timespec no_time{};
    while (sigtimedwait(&all, nullptr, &no_time) > 0) {
    }
    sigaction(SIGCHLD, &child_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
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

StopListener::StopListener(const Signals& signals, std::stop_source source)
    : signals_(signals),
      wake_(eventfd(0, EFD_CLOEXEC)),
      thread_([this, source = std::move(source)](const std::stop_token& stop) mutable {
          while (!stop.stop_requested()) {
              std::array ready{pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
              if (poll(ready.data(), ready.size(), -1) <= 0 || ready[0].revents == 0) continue;
              // Others than stop signals mean nothing while there is no child.
              const auto signal = signals_.next();
              if (!signal || !is_stop_signal(*signal)) continue;
              heard_ = signal;
              source.request_stop();
              return;
          }
      }) {}

std::optional<int> StopListener::finish() {
    thread_.request_stop();
    eventfd_write(wake_.get(), 1);
    thread_.join();
    return heard_;
}

}  // namespace holdfast::guards::run
