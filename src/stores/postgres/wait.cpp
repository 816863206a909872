#include "stores/postgres/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <poll.h>
#include <sys/eventfd.h>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds patience{2000};
constexpr milliseconds pause_after_failure{1000};

Boottime real_time() { return host_clock().boottime(); }

}  // namespace

Listener::Listener(const Settings& settings) : settings_(settings), nudged_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Listener::~Listener() = default;

std::unique_ptr<Listener::Place> Listener::enter(const std::string& channel, const Statement& question) {
    Lock lock(mutex_);
    const auto sleeper = sleepers_.emplace(sleepers_.end());
    sleeper->channel = channel;
    auto place = std::make_unique<Place>(*this, sleeper);
    if (channel.empty() || channels_.contains(channel) || pooled_ || real_time() < next_attempt_) return place;
    borrow(lock);
    if (!channels_.contains(channel) && !pooled_) place->seen = listen(lock, channel, question);
    give_back();
    return place;
}

/// Under the lock, which is let go while the network is waited for.
std::optional<Rows> Listener::listen(Lock& lock, const std::string& channel, const Statement& question) {
    std::set<std::string> all = channels_;
    lock.unlock();
    const CallBudget budget(patience);
    std::vector<Statement> trip;
    if (!connection_ || !connection_->is_usable()) {
        auto opened = Connection::open(settings_, budget);
        connection_ = opened ? std::move(*opened) : nullptr;
        trip.push_back(notice_dead_peers());
        // Those who wait already lost their connection; they are served by this one, too.
        for (const std::string& other : all) trip.emplace_back(fmt::format("LISTEN {}", other));
    }
    const bool pooled = connection_ && connection_->is_pooled();
    // Committed before the question is asked: what happens in between is heard, or seen.
    trip.emplace_back("BEGIN");
    trip.emplace_back(fmt::format("LISTEN {}", channel));
    trip.emplace_back("COMMIT");
    trip.push_back(question);
    // Behind a pooler it would be somebody else who hears it.
    Trip asked;
    if (connection_ && !pooled) asked = connection_->run(trip, budget);
    const bool heard = asked.answers.size() == trip.size();
    if (!heard) connection_.reset();
    lock.lock();
    pooled_ = pooled;
    if (heard)
        channels_.insert(channel);
    else
        channels_.clear();
    if (!heard) next_attempt_ = real_time() + pause_after_failure;
    return heard ? std::optional(std::move(asked.answers.back())) : std::nullopt;
}

void Listener::leave(std::list<Sleeper>::iterator sleeper) {
    Lock lock(mutex_);
    const std::string channel = sleeper->channel;
    sleepers_.erase(sleeper);
    const auto waits_there = [&](const Sleeper& other) { return other.channel == channel; };
    if (!channels_.contains(channel) || std::ranges::any_of(sleepers_, waits_there)) return;
    // Nobody reads the connection while nobody waits, and what is not read piles up in the server.
    borrow(lock);
    if (connection_ && channels_.contains(channel) && std::ranges::none_of(sleepers_, waits_there)) {
        connection_->send_only(Statement(fmt::format("UNLISTEN {}", channel)));
        channels_.erase(channel);
    }
    give_back();
}

bool Listener::hears(std::list<Sleeper>::iterator sleeper) {
    const Lock lock(mutex_);
    return channels_.contains(sleeper->channel);
}

bool Listener::sleep(Sleeper& sleeper, milliseconds time, const std::stop_token& stop) {
    const Boottime until = real_time() + time;
    const std::stop_callback wake(stop, [this] { nudge(); });
    Lock lock(mutex_);
    while (!sleeper.heard && !stop.stop_requested() && real_time() < until) {
        const auto may_watch = [&] { return !borrowed_ && wanted_ == 0 && channels_.contains(sleeper.channel); };
        if (may_watch()) {
            watch(lock, until);
            continue;
        }
        sleeper.asleep = true;
        sleeper.called.wait_for(lock, stop, until - real_time(), [&] { return sleeper.heard || may_watch(); });
        sleeper.asleep = false;
    }
    return sleeper.heard;
}

/// Sleeps on the connection, for everybody, and calls those whose turn it is.
void Listener::watch(Lock& lock, Boottime until) {
    borrowed_ = true;
    const milliseconds time = std::max(until - real_time(), milliseconds{0});
    lock.unlock();
    std::array ready{pollfd{connection_->socket(), POLLIN, 0}, pollfd{nudged_.get(), POLLIN, 0}};
    poll(ready.data(), ready.size(), static_cast<int>(time.count()));
    eventfd_t ignored = 0;
    eventfd_read(nudged_.get(), &ignored);
    const auto heard = connection_->notifications();
    const bool gone = !connection_->is_usable();
    lock.lock();
    for (Sleeper& sleeper : sleepers_)
        for (const std::string& channel : heard) {
            if (sleeper.channel != channel) continue;
            sleeper.heard = true;
            sleeper.called.notify_one();
        }
    if (gone) {
        connection_.reset();
        channels_.clear();
        next_attempt_ = real_time() + pause_after_failure;
    }
    give_back();
}

/// Waits until nobody else uses the connection. Who only watches it is called away. Under the lock.
void Listener::borrow(Lock& lock) {
    ++wanted_;
    nudge();
    returned_.wait(lock, [&] { return !borrowed_; });
    --wanted_;
    borrowed_ = true;
}

/// Under the lock.
void Listener::give_back() {
    borrowed_ = false;
    if (wanted_ > 0) {
        returned_.notify_one();
        return;
    }
    const auto next = std::ranges::find_if(sleepers_, [](const Sleeper& s) { return s.asleep && !s.heard; });
    if (next != sleepers_.end()) next->called.notify_one();
}

void Listener::nudge() const { eventfd_write(nudged_.get(), 1); }

}  // namespace holdfast::stores::postgres
