#include "base/attempts.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace holdfast::base {

using std::chrono::milliseconds;

bool Attempts::wait(milliseconds most) const {
    const milliseconds time = pause();
    if (time > most) return false;
    if (time > milliseconds{0}) std::this_thread::sleep_for(time);
    return true;
}

milliseconds Attempts::pause() const {
    const std::scoped_lock lock(mutex_);
    return failures_ == 0 ? milliseconds{0} : next_ - clock_.boottime();
}

void Attempts::succeeded() {
    const std::scoped_lock lock(mutex_);
    failures_ = 0;
}

void Attempts::failed() {
    thread_local std::minstd_rand random(std::random_device{}());
    const std::scoped_lock lock(mutex_);
    ++failures_;
    const milliseconds most = std::min(milliseconds{10} * (1 << std::min(failures_, 6)), milliseconds{500});
    next_ = clock_.boottime() +
            milliseconds{std::uniform_int_distribution<milliseconds::rep>(most.count() / 2, most.count())(random)};
}

}  // namespace holdfast::base
