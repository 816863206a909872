#include "base/thread.hpp"

#include <csignal>
#include <pthread.h>
#include <utility>

namespace holdfast::base {
namespace {

/// A thread begins with the signal mask of the thread that starts it.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

std::jthread start_thread(const char* name, std::function<void(const std::stop_token&)> work) {
    const SignalsBlocked blocked;
    return std::jthread([name, work = std::move(work)](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), name);
        work(stop);
    });
}

}  // namespace holdfast::base
