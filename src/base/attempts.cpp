#include "base/attempts.hpp"

#include "base/jitter.hpp"

#include <algorithm>
#include <thread>

namespace holdfast::base {

using std::chrono::milliseconds;

Result<void> Attempts::wait(milliseconds most) const {
    milliseconds time{0};
    {
        const std::scoped_lock lock(mutex_);
        if (failures_ > 0) time = next_ - clock_.boottime();
        if (time > most) return fail(last_.code, last_.message + "; it was tried just now, and not again so soon");
    }
    if (time > milliseconds{0}) std::this_thread::sleep_for(time);
    return {};
}

void Attempts::succeeded() {
    const std::scoped_lock lock(mutex_);
    failures_ = 0;
}

void Attempts::failed(Error why) {
    const std::scoped_lock lock(mutex_);
    ++failures_;
    last_ = std::move(why);
    const milliseconds most = std::min(milliseconds{10} * (1 << std::min(failures_, 6)), milliseconds{500});
    next_ = clock_.boottime() + random_between(most / 2, most);
}

}  // namespace holdfast::base
