#include "stores/redis/wait.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <sys/eventfd.h>

namespace holdfast::stores::redis {
namespace {

using std::chrono::milliseconds;

/// Who only listens can do without; looking goes on meanwhile.
constexpr milliseconds connect_limit{2000};
constexpr milliseconds rest_after_failure{1000};

}  // namespace

Hints::Hints(Address address) : address_(std::move(address)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Hints::~Hints() = default;

Hints::Ear::Ear(Hints& hints, std::string channel)
    : hints_(hints), name_(std::move(channel)), channel_([&]() -> Channel& {
          const std::scoped_lock lock(hints.mutex_);
          Channel& found = hints.channels_[name_];
          if (++found.listeners == 1) hints.tell("SUBSCRIBE", name_);
          return found;
      }()) {
    const std::scoped_lock lock(hints_.mutex_);
    known_ = channel_.heard;
}

Hints::Ear::~Ear() {
    const std::scoped_lock lock(hints_.mutex_);
    if (--channel_.listeners > 0) return;
    hints_.channels_.erase(name_);
    hints_.tell("UNSUBSCRIBE", name_);
    // Nobody is left who would send it, and what is not read piles up.
    if (!hints_.has_reader_) hints_.send_now();
}

bool Hints::Ear::wait_until_listening(milliseconds most, const std::stop_token& stop) {
    return hints_.wait_until(channel_, [&] { return channel_.subscribed; }, most, stop);
}

bool Hints::Ear::wait(milliseconds most, const std::stop_token& stop) {
    const bool heard = hints_.wait_until(channel_, [&] { return channel_.heard != known_; }, most, stop);
    const std::scoped_lock lock(hints_.mutex_);
    known_ = channel_.heard;
    return heard;
}

/// Under mutex_.
void Hints::tell(std::string_view verb, const std::string& channel) {
    to_send_.push_back({verb, channel});
    wake_reader();
}

/// Under mutex_, when there is no reader. Does not wait: a socket that takes nothing is given up.
void Hints::send_now() {
    const CallBudget none(milliseconds{0});
    bool lost = false;
    for (const Command& command : std::exchange(to_send_, {}))
        lost = lost || (connection_ && !connection_->send(command, none));
    if (lost) lose_connection();
}

void Hints::wake_reader() const {
    // It can only fail when it has been woken so often that it will wake up.
    static_cast<void>(eventfd_write(wake_.get(), 1));
}

template <class Happened>
bool Hints::wait_until(Channel& channel, Happened happened, milliseconds most, const std::stop_token& stop) {
    const CallBudget budget(most);
    const std::stop_callback on_stop(stop, [this] { wake_reader(); });
    std::unique_lock lock(mutex_);
    while (!happened() && !stop.stop_requested() && budget.left() > milliseconds{0}) {
        if (!has_reader_) {
            has_reader_ = true;
            read_for_all(lock, budget);
            has_reader_ = false;
        } else {
            ++channel.asleep;
            channel.changed.wait_for(lock, stop, budget.left(), [&] { return happened() || !has_reader_; });
            --channel.asleep;
        }
    }
    // Also who has not read: it may be the one that was found to, and goes.
    if (!has_reader_) find_reader();
    return happened();
}

/// Under mutex_. Somebody else must read when this one goes, and one is enough.
void Hints::find_reader() {
    const auto found = std::ranges::find_if(channels_, [](const auto& one) { return one.second.asleep > 0; });
    if (found != channels_.end()) found->second.changed.notify_one();
}

/// One turn of reading: as the only thread that touches the connection, and without mutex_ while it waits.
void Hints::read_for_all(std::unique_lock<std::mutex>& lock, const CallBudget& budget) {
    const bool rests = rests_until_ && !rests_until_->passed(host_clock());
    if (!connection_ && !rests) {
        lock.unlock();
        auto opened = Connection::open(address_, CallBudget(connect_limit));
        lock.lock();
        if (opened)
            connection_ = std::move(*opened);
        else
            rests_until_ = Deadline::in(host_clock(), rest_after_failure);
        to_send_.clear();
        if (connection_)
            for (const auto& [name, channel] : channels_) to_send_.push_back({"SUBSCRIBE", name});
    }
    const std::vector<Command> commands = std::exchange(to_send_, {});
    lock.unlock();

    bool lost = false;
    for (const Command& command : commands) lost = lost || (connection_ && !connection_->send(command, budget));
    std::array waiting{pollfd{wake_.get(), POLLIN, 0}, pollfd{connection_ ? connection_->fd() : -1, POLLIN, 0}};
    // A short turn where there is nothing to hear, so that the connection is tried again.
    const milliseconds turn = connection_ ? budget.left() : std::min(budget.left(), rest_after_failure / 4);
    if (!lost) poll(waiting.data(), waiting.size(), static_cast<int>(turn.count()));
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(wake_.get(), &count));

    std::vector<Message> messages;
    while (connection_ && !lost) {
        auto message = connection_->receive_now();
        lost = !message;
        if (lost || !*message) break;
        messages.push_back(std::move(**message));
    }
    lock.lock();
    for (const Message& message : messages) take_in(message);
    if (lost) lose_connection();
}

/// Under mutex_.
void Hints::take_in(const Message& message) {
    const Value value = message.value();
    const auto found = channels_.find(value[1].text());
    if (found == channels_.end()) return;
    if (value[0].text() == "subscribe") found->second.subscribed = true;
    if (value[0].text() == "message") ++found->second.heard;
    found->second.changed.notify_all();
}

/// Under mutex_. What was announced meanwhile is lost, so everybody is sent to look.
void Hints::lose_connection() {
    connection_.reset();
    for (auto& [name, channel] : channels_) {
        channel.subscribed = false;
        ++channel.heard;
        channel.changed.notify_all();
    }
}

}  // namespace holdfast::stores::redis
