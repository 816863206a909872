#include "stores/postgres/pool.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_idle = 32;

/// A server that comes back must not meet all its clients in the same moment.
milliseconds backoff(int failures) {
    static thread_local std::minstd_rand random(std::random_device{}());
    const milliseconds most = std::min(milliseconds{10} * (1 << std::min(failures, 6)), milliseconds{500});
    return milliseconds{std::uniform_int_distribution<milliseconds::rep>(most.count() / 2, most.count())(random)};
}

}  // namespace

Result<std::unique_ptr<Connection>> Pool::take(const Budget& budget) {
    while (true) {
        std::unique_ptr<Connection> idle;
        {
            const std::scoped_lock lock(mutex_);
            if (idle_.empty()) break;
            idle = std::move(idle_.back());
            idle_.pop_back();
        }
        if (!idle->is_gone()) return idle;
    }
    if (auto turn = wait_for_turn(budget); !turn) return std::unexpected(turn.error());
    auto opened = Connection::open(settings_, budget);
    const std::scoped_lock lock(mutex_);
    failures_ = opened ? 0 : failures_ + 1;
    if (!opened) next_attempt_ = host_clock().boottime() + backoff(failures_);
    return opened;
}

Result<void> Pool::wait_for_turn(const Budget& budget) const {
    milliseconds wait{};
    {
        const std::scoped_lock lock(mutex_);
        wait = failures_ == 0 ? milliseconds{0} : next_attempt_ - host_clock().boottime();
    }
    if (wait > budget.left()) return fail(Errc::store_unavailable, settings_.url + " could not be reached just now");
    if (wait > milliseconds{0}) std::this_thread::sleep_for(wait);
    return {};
}

void Pool::give(std::unique_ptr<Connection> connection) {
    if (!connection || !connection->usable()) return;
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(connection));
}

void Pool::drop_idle() {
    std::vector<std::unique_ptr<Connection>> dropped;
    const std::scoped_lock lock(mutex_);
    dropped.swap(idle_);
}

}  // namespace holdfast::stores::postgres
