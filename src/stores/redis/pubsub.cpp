#include "stores/redis/pubsub.hpp"

#include "base/real_clock.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <utility>

namespace holdfast::stores::redis {
namespace {

using std::chrono::milliseconds;

/// Real time, since announcements do not depend on the clock that judges.
constexpr milliseconds connect_limit{2000};
constexpr milliseconds confirm_limit{1000};
/// Between two attempts to connect. Watches are polled meanwhile.
constexpr milliseconds rest_after_connect{1000};
/// Longer after a refusal, because rights rarely change.
constexpr milliseconds rest_after_refusal{30'000};

}  // namespace

PubSub::PubSub(Address address) : address_(std::move(address)) {}

void PubSub::subscribe(const std::vector<std::string>& channels) {
    const bool had_others = !channels_.empty();
    const bool subscribed = connection_ && send("SUBSCRIBE", channels) && confirm();
    channels_.insert(channels.begin(), channels.end());
    // The server may have closed a connection without subscriptions.
    if (!subscribed) connect();
    // The caller looks after this, so nothing is missed.
    if (!had_others) announced_.may_have_missed = false;
}

void PubSub::unsubscribe(const std::vector<std::string>& channels) {
    for (const std::string& channel : channels) channels_.erase(channel);
    if (!connection_ || !send("UNSUBSCRIBE", channels) || !channels_.empty()) return;
    static_cast<void>(confirm());
    announced_ = {};
}

Announced PubSub::wait(milliseconds most, int wake) {
    if (!connection_ && !channels_.empty()) connect();
    const bool has_news = announced_.may_have_missed || !announced_.channels.empty();
    const bool waits_to_connect = !connection_ && !channels_.empty();
    const milliseconds time = has_news ? milliseconds{0} : waits_to_connect ? std::min(most, rest_left()) : most;
    std::array waiting{pollfd{wake, POLLIN, 0}, pollfd{connection_ ? connection_->fd() : -1, POLLIN, 0}};
    poll(waiting.data(), waiting.size(), static_cast<int>(time.count()));
    if (connection_ && !receive()) connect();
    return std::exchange(announced_, {});
}

/// Subscribes to all channels on a new connection, unless the last attempt was a moment ago.
void PubSub::connect() {
    if (rest_left() > milliseconds{0}) return;
    auto opened = Connection::open(address_, base::CallBudget(connect_limit));
    rests_until_ = Deadline::in(base::real_clock(), rest_after_connect);
    if (!opened) return;
    connection_ = std::move(*opened);
    if (!send("SUBSCRIBE", {channels_.begin(), channels_.end()}) || !confirm()) return;
    announced_.may_have_missed = true;
}

/// False if the connection is lost.
bool PubSub::send(std::string_view verb, const std::vector<std::string>& channels) {
    Command command{verb};
    for (const std::string& channel : channels) command.add(channel);
    const bool sent = connection_->send(command, base::CallBudget(confirm_limit)).has_value();
    if (sent)
        unconfirmed_ += channels.size();
    else
        disconnect();
    return sent;
}

/// Waits until the server has answered everything. False if the connection is lost or the server is silent for too
/// long.
bool PubSub::confirm() {
    const base::CallBudget budget(confirm_limit);
    while (unconfirmed_ > 0) {
        pollfd waiting{connection_->fd(), POLLIN, 0};
        poll(&waiting, 1, budget.left_ms());
        if (!receive()) return false;
        if (unconfirmed_ > 0 && budget.over()) {
            disconnect();
            return false;
        }
    }
    return true;
}

/// Reads the messages that have arrived. False if the connection is lost.
bool PubSub::receive() {
    while (true) {
        const auto message = connection_->receive_now();
        if (message && !*message) return true;
        const bool is_refused = message && (*message)->value().is_error();
        if (is_refused) rests_until_ = Deadline::in(base::real_clock(), rest_after_refusal);
        if (!message || is_refused) {
            disconnect();
            return false;
        }
        const Value value = (*message)->value();
        if (value[0].text() == "message")
            announced_.channels.emplace_back(value[1].text());
        else if (unconfirmed_ > 0)
            --unconfirmed_;
    }
}

milliseconds PubSub::rest_left() const { return rests_until_.remaining(base::real_clock()); }

void PubSub::disconnect() {
    connection_.reset();
    unconfirmed_ = 0;
    announced_.may_have_missed = true;
}

}  // namespace holdfast::stores::redis
