#include "stores/etcd/wire/watch_stream.hpp"

namespace holdfast::stores::etcd {
namespace {

/// A stopped node accepts connections and never answers.
constexpr std::chrono::milliseconds longest_connect{2000};

}  // namespace

WatchStream::WatchStream(Cluster& cluster, std::size_t endpoint)
    : cluster_(cluster), endpoint_(endpoint), channel_(cluster.take_channel(endpoint, longest_connect).channel) {
    if (!channel_) return;
    const std::string token = cluster.token();
    channel_->begin({.method = method::watch, .token = token, .is_stream = true});
}

WatchStream::~WatchStream() {
    if (is_over()) return;
    channel_->cancel();
    cluster_.give_back(endpoint_, std::move(channel_));
}

void WatchStream::create(WatchId id, std::string_view key, bool only_deletes) {
    if (channel_) channel_->send(watch_message(id, key, only_deletes));
}

void WatchStream::cancel(WatchId id) {
    if (channel_) channel_->send(cancel_message(id));
}

void WatchStream::wait(std::chrono::milliseconds time, int wake) {
    if (!is_over()) channel_->advance(time, wake);
}

std::optional<WatchNews> WatchStream::next() {
    const auto message = channel_ ? channel_->take_message() : std::nullopt;
    if (!message) return std::nullopt;
    return read_news(*message);
}

}  // namespace holdfast::stores::etcd
