#include "stores/etcd/key_watches.hpp"

#include "base/real_clock.hpp"

#include <algorithm>
#include <poll.h>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// Between the end of a stream and the next one. In real time.
constexpr milliseconds rest_after_break{500};

}  // namespace

bool KeyWatches::listen(std::uint64_t listener, const WatchedKey& key) {
    if (const auto found = by_listener_.find(listener); found != by_listener_.end()) {
        if (found->second->first == key) return true;
        leave(listener);
    }
    if (rests_until_ && !rests_until_->passed(base::real_clock())) return false;
    if (!stream_) stream_ = std::make_unique<WatchStream>(cluster_, cluster_.preferred());
    if (stream_->is_over()) {
        close();
        rests_until_ = Deadline::in(base::real_clock(), rest_after_break);
        return false;
    }
    const auto [watched, is_new] = watched_.try_emplace(key);
    if (is_new) {
        watched->second.id = ++last_id_;
        by_id_.emplace(last_id_, watched);
        stream_->create(last_id_, key.key, key.only_deletes);
    }
    watched->second.listeners.insert(listener);
    by_listener_.emplace(listener, watched);
    return true;
}

void KeyWatches::drop(std::uint64_t listener) {
    leave(listener);
    // End the stream, because nobody would read it.
    if (watched_.empty()) close();
}

void KeyWatches::leave(std::uint64_t listener) {
    const auto found = by_listener_.find(listener);
    if (found == by_listener_.end()) return;
    const auto watched = found->second;
    by_listener_.erase(found);
    watched->second.listeners.erase(listener);
    if (!watched->second.listeners.empty()) return;
    stream_->cancel(watched->second.id);
    by_id_.erase(watched->second.id);
    watched_.erase(watched);
}

bool KeyWatches::leave_old_node() {
    if (!stream_ || stream_->endpoint() == cluster_.preferred()) return false;
    close();
    return true;
}

KeyWatches::News KeyWatches::wait(milliseconds most, int wake) {
    News news;
    if (!stream_) {
        pollfd waiting{wake, POLLIN, 0};
        poll(&waiting, 1, static_cast<int>(most.count()));
        return news;
    }
    stream_->wait(most, wake);
    while (auto message = stream_->next()) {
        const auto found = by_id_.find(message->id);
        // The answer to a watch that was cancelled meanwhile.
        if (found == by_id_.end() && message->id >= 0) continue;
        news.lost = news.lost || message->over || message->id < 0;
        if (news.lost) break;
        const auto& listeners = found->second->second.listeners;
        news.keys.push_back({.listeners = {listeners.begin(), listeners.end()},
                             .began_after = message->created ? message->revision : 0,
                             .events = std::move(message->events)});
    }
    news.lost = news.lost || stream_->is_over();
    if (news.lost) {
        close();
        rests_until_ = Deadline::in(base::real_clock(), rest_after_break);
    }
    return news;
}

void KeyWatches::close() {
    stream_.reset();
    watched_.clear();
    by_id_.clear();
    by_listener_.clear();
}

}  // namespace holdfast::stores::etcd
