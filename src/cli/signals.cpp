#include "cli/signals.hpp"

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

sigset_t ending_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        // What the parent told us to ignore (nohup) stays ignored.
        struct sigaction action{};
        sigaction(number, nullptr, &action);
        if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
    }
    return set;
}

}  // namespace

StopOnSignal::StopOnSignal() {
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    listener_ = std::jthread([this](const std::stop_token& end) { listen(end); });
}

StopOnSignal::~StopOnSignal() {
    listener_.request_stop();
    listener_.join();
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void StopOnSignal::listen(const std::stop_token& end) {
    const sigset_t set = ending_signals();
    while (!end.stop_requested()) {
        // In slices, because nobody can wake this wait but a signal.
        const timespec slice{0, 20'000'000};
        const int number = sigtimedwait(&set, nullptr, &slice);
        if (number <= 0) continue;
        if (signal_.exchange(number) != 0) _exit(128 + number);
        stop_.request_stop();
    }
}

void StopOnSignal::sleep(std::chrono::milliseconds time) const {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop_.get_token(), time, [] { return false; });
}

}  // namespace holdfast::cli
