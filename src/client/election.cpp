#include "holdfast/election.hpp"

#include "base/os_error.hpp"
#include "base/thread.hpp"
#include "client/repeat.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

/// Where the lease shows what its holder proclaims.
constexpr const char* value_key = "value";

constexpr milliseconds proclaim_timeout{2000};

/// Together less than a second, in which an observer is told that the store is away.
constexpr milliseconds look_timeout{500};
constexpr milliseconds longest_nap{250};

std::optional<Leader> leader_of(const LockStatus& lock) {
    if (lock.state != LockState::held) return std::nullopt;
    const auto value = lock.lease->meta.find(value_key);
    return Leader{lock.lease->lock_id, lock.lease->token, lock.lease->holder,
                  value == lock.lease->meta.end() ? "" : value->second, lock.lease->acquired_at};
}

/// Looks, tells what changed, and sleeps until something may have changed.
class Follower {
public:
    Follower(Store& store, LockName name, LeaderSeen seen)
        : store_(store), name_(std::move(name)), seen_(std::move(seen)) {}

    void follow(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            const auto lock = store_.inspect(name_, Deadline::in(store_.clock(), look_timeout));
            if (lock)
                tell(leader_of(*lock));
            else
                tell_away(lock.error());
            sleep(lock, stop);
        }
    }

private:
    void tell(const std::optional<Leader>& now) {
        if (told_ && *told_ == now) return;
        told_ = now;
        is_away_ = false;
        seen_(now);
    }

    void tell_away(const Error& error) {
        if (is_away_) return;
        is_away_ = true;
        told_.reset();
        seen_(std::unexpected(error));
    }

    void sleep(const Result<LockStatus>& lock, const std::stop_token& stop) {
        const Clock& clock = store_.clock();
        const Deadline until = Deadline::in(clock, longest_nap);
        if (lock) {
            const Watch watch{.name = name_, .seen_seq = lock->seq, .ticket = {}, .stop = stop};
            if (store_.wait_for_change(watch, until)) return;
        }
        std::mutex mutex;
        std::unique_lock own(mutex);
        std::condition_variable_any nobody;
        nobody.wait_for(own, stop, std::min(until.remaining(clock), longest_nap), [] { return false; });
    }

    Store& store_;
    const LockName name_;
    const LeaderSeen seen_;
    std::optional<std::optional<Leader>> told_{};  ///< Absent while nobody knows.
    bool is_away_ = false;
};

}  // namespace

Leadership::Leadership(Hold hold, HoldOptions options, std::string value)
    : hold_(std::move(hold)), options_(std::move(options)), value_(std::move(value)) {}

Result<void> Leadership::proclaim(std::string value) {
    Renew renewal{hold_.name(), hold_.credentials(), options_.ttl};
    renewal.meta = options_.meta;
    renewal.meta->insert_or_assign(value_key, value);
    const auto renewed = client::apply_or_repeat(hold_.store(), renewal, *options_.clock, proclaim_timeout);
    if (!renewed) return std::unexpected(renewed.error());
    value_ = std::move(value);
    return {};
}

Result<Leadership> Election::campaign(std::string value, HoldOptions options) const {
    if (options.wait == milliseconds{0}) options.wait = HoldOptions::forever;
    if (options.clock == nullptr) options.clock = &store_->clock();
    HoldOptions with_value = options;
    with_value.meta.insert_or_assign(value_key, value);
    auto won = holdfast::hold(*store_, name_, with_value);
    if (!won) return std::unexpected(std::move(won.error()));
    return Leadership(std::move(*won), std::move(options), std::move(value));
}

Result<std::optional<Leader>> Election::leader(Deadline deadline) const {
    const auto lock = store_->inspect(name_, deadline);
    if (!lock) return std::unexpected(lock.error());
    return leader_of(*lock);
}

Result<LeaderWatch> Election::observe(LeaderSeen seen) const {
    const auto follower = std::make_shared<Follower>(*store_, name_, std::move(seen));
    try {
        return LeaderWatch(
            base::start_thread("holdfast-elect", [follower](const std::stop_token& stop) { follower->follow(stop); }));
    } catch (const std::system_error& error) {
        return std::unexpected(base::os_error(error.code().value(), "start a thread that follows an election"));
    }
}

}  // namespace holdfast
