#include "stores/opened_in_time.hpp"

#include "base/thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;
using Opened = Result<std::unique_ptr<Store>>;

/// How long the caller sleeps at most: a clock that is moved by hand tells nobody that time has passed.
constexpr milliseconds longest_sleep{20};

/// Shared with the thread, which may go on when nobody waits any more.
struct Attempt {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::optional<Opened> opened;  ///< Guarded by mutex.
};

/// Threads for which nobody waits any more. The process waits for them when it ends.
class LeftThreads {
public:
    void add(std::shared_ptr<Attempt> attempt, std::jthread thread) {
        const std::scoped_lock lock(mutex_);
        std::erase_if(threads_, [](const Left& each) {
            const std::scoped_lock attempt_lock(each.attempt->mutex);
            return each.attempt->opened.has_value();
        });
        threads_.push_back({std::move(attempt), std::move(thread)});
    }

private:
    struct Left {
        std::shared_ptr<Attempt> attempt;
        std::jthread thread;
    };

    std::mutex mutex_;
    std::list<Left> threads_;  ///< Guarded by mutex_.
};

LeftThreads& left_threads() {
    static LeftThreads all;
    return all;
}

Error not_opened(const OpenOptions& options) {
    if (options.cancel.stop_requested()) return {Errc::cancelled, "opening the store was cancelled"};
    return {Errc::store_unavailable, "the store did not answer in the time for opening it; nothing was changed"};
}

}  // namespace

Opened opened_in_time(std::string_view url, const OpenOptions& options) {
    const Clock& clock = *options.clock;
    const auto is_over = [&] { return options.cancel.stop_requested() || options.deadline.passed(clock); };
    if (is_over()) return std::unexpected(not_opened(options));
    // Before the thread, so that it ends after it.
    LeftThreads& left = left_threads();
    const auto attempt = std::make_shared<Attempt>();
    std::jthread thread;
    try {
        thread = base::start_thread("holdfast-open", [attempt, url = std::string(url), &clock](const auto&) {
            auto opened = open_store(url, clock);
            const std::scoped_lock lock(attempt->mutex);
            attempt->opened = std::move(opened);
            attempt->ended.notify_all();
        });
    } catch (const std::system_error&) {
        return open_store(url, clock);
    }
    {
        std::unique_lock lock(attempt->mutex);
        while (!attempt->opened && !is_over())
            attempt->ended.wait_for(lock, options.cancel, std::min(options.deadline.remaining(clock), longest_sleep),
                                    [&] { return attempt->opened.has_value(); });
        if (attempt->opened) return *std::move(attempt->opened);
    }
    left.add(attempt, std::move(thread));
    return std::unexpected(not_opened(options));
}

}  // namespace holdfast::stores
