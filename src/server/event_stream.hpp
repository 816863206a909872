#pragma once

#include "client/event_reader.hpp"
#include "json/value.hpp"
#include "server/events.hpp"

#include <memory>
#include <optional>
#include <string>

namespace holdfast::server {

/// A cursor as the id of a message: a browser sends it back in a header, where blanks at the end would be lost.
[[nodiscard]] std::string id_of(const EventCursor& cursor);
/// Also of a cursor that was not written as an id.
[[nodiscard]] EventCursor cursor_of(std::string_view id);

/// `id: …`, `event: …`, `data: …`. The id comes with the last message that it speaks of, and not before.
[[nodiscard]] Chunk message(std::string_view kind, const std::optional<EventCursor>& cursor, const json::Value& data);
/// Events of this lock up to `through` are not kept any more. A client that has handled them misses nothing.
[[nodiscard]] Chunk gap_message(const LockName& name, std::uint64_t through);

/// Events with their texts and cursors.
[[nodiscard]] FeedPage page_of(const std::vector<AuditEvent>& events, const EventCursor& before,
                               const EventCursor& after);

/// One client that follows the events. It reads older ones for itself until it has caught up with the feed, page by
/// page, as fast as its client takes them; from then on it is given what the feed reads. A client that does not take
/// that is dropped: it comes back with the id of the last event that it has.
class EventStream : public std::enable_shared_from_this<EventStream> {
public:
    EventStream(EventFeed& feed, Services& services, ExchangePtr exchange, std::optional<EventCursor> since,
                std::string prefix);

    void begin();
    /// The feed has begun to read: nothing that happens from now on is missing there.
    void feed_is_ready();
    void take(const FeedPage& page, const Chunk& whole);
    /// Ends it if its caller would not be let in any more.
    void check_rights();
    void end();

private:
    enum class State { waits_for_feed, catches_up, is_live, is_over };

    void read_page();
    void took(Result<FeedPage> page, std::uint64_t feed_was_at, bool is_at_end);
    void join(std::uint64_t feed_was_at);
    void send(const FeedEvent& each);
    void write(const Chunk& chunk);
    void beat();
    [[nodiscard]] bool is_visible(const LockName& name) const;

    EventFeed& feed_;
    Services& services_;
    ExchangePtr exchange_;
    std::optional<EventCursor> since_;
    const std::string prefix_;
    State state_ = State::waits_for_feed;
    std::shared_ptr<client::EventReader> reader_{};  ///< While it catches up.
    NewestEvents sent_{};                            ///< As long as the feed can bring them again.
    bool is_past_own_reading_ = false;               ///< The feed cannot.
    std::uint64_t joined_at_look_ = 0;
    std::uint64_t taken_ = 0;  ///< The number of the newest page of the feed that it has.
    EventCursor cursor_{};     ///< Everything before it was sent, or is not for this client.
    Loop::Timer beat_{};
    Loop::Timer retry_{};
};

}  // namespace holdfast::server
