#include "cli/signals.hpp"

#include <condition_variable>
#include <mutex>

namespace holdfast::cli {

void StopOnSignal::sleep(std::chrono::milliseconds time) const {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop_.get_token(), time, [] { return false; });
}

}  // namespace holdfast::cli
