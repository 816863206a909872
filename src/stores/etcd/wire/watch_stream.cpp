#include "stores/etcd/wire/watch_stream.hpp"

#include <algorithm>
#include <sys/eventfd.h>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_idle = 64;
constexpr milliseconds longest_idle{10'000};
/// A stopped node accepts connections and never says a word.
constexpr milliseconds longest_connect{2000};

}  // namespace

WatchStream::WatchStream(Cluster& cluster, std::size_t endpoint, const std::string& message)
    : cluster_(cluster),
      endpoint_(endpoint),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      channel_(cluster.take_channel(endpoint, longest_connect).channel) {
    if (!channel_) return;
    const std::string token = cluster.token();
    channel_->begin({.method = method::watch, .token = token, .message = message, .may_go_on = true});
}

WatchStream::~WatchStream() {
    if (!channel_ || channel_->end()) return;
    channel_->cancel();
    cluster_.give_back(endpoint_, std::move(channel_));
}

std::optional<WatchNews> WatchStream::next(milliseconds time) {
    if (auto news = buffered()) return news;
    channel_->advance(time, woken_.get());
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(woken_.get(), &count));
    return buffered();
}

void WatchStream::wake() { static_cast<void>(eventfd_write(woken_.get(), 1)); }

std::optional<WatchNews> WatchStream::buffered() {
    if (const auto message = channel_ ? channel_->take_message() : std::nullopt) return read_news(*message);
    if (!channel_ || channel_->end()) return WatchNews{.over = true};
    return std::nullopt;
}

std::unique_ptr<WatchStream> WatchPool::take(const std::string& key, std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::ranges::find_if(idle_, [&](const Entry& one) { return one.key == key && one.endpoint == endpoint; });
    if (found == idle_.end()) return nullptr;
    auto stream = std::move(found->stream);
    idle_.erase(found);
    return stream;
}

void WatchPool::give_back(const std::string& key, std::size_t endpoint, std::unique_ptr<WatchStream> stream) {
    // Real time: etcd keeps the connection whatever the clock of a test says.
    const Boottime now = host_clock().boottime();
    const std::scoped_lock lock(mutex_);
    std::erase_if(idle_, [&](const Entry& one) { return now - one.since > longest_idle; });
    if (idle_.size() >= most_idle) idle_.erase(idle_.begin());
    idle_.push_back({key, endpoint, std::move(stream), now});
}

}  // namespace holdfast::stores::etcd
