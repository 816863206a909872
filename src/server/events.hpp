#pragma once

#include "client/event_reader.hpp"
#include "server/exchange.hpp"
#include "server/services.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::server {

/// An event as a stream carries it.
struct FeedEvent {
    AuditEvent event;
    EventCursor cursor{};                       ///< Where a reader goes on that has handled this one.
    std::shared_ptr<const std::string> text{};  ///< With its id, for every stream that sends it.
};

/// What the feed read at one time.
struct FeedPage {
    std::uint64_t number = 0;
    std::vector<FeedEvent> events{};
    EventCursor cursor{};
    /// Whether it had everything that was there when it was asked for, and when that was.
    bool is_at_end = false;
    std::uint64_t asked = 0;
};

class EventStream;

/// Reads the events of all locks once for all streams that are up to date. Those that are not read for themselves until
/// they have caught up. Only on the loop's thread; the store is read by the readers.
class EventFeed {
public:
    explicit EventFeed(Services& services) : services_(services) {}
    ~EventFeed();

    /// A client that wants events from `since` on; absent: from now on.
    void open(const ExchangePtr& exchange, std::optional<EventCursor> since, std::string prefix);
    /// Something may have happened: look now, and not only at the next poll.
    void poke();
    void stop();

    // For the streams.
    /// The pages since `number`, oldest first; absent if some of them are forgotten.
    [[nodiscard]] std::optional<std::vector<std::shared_ptr<const FeedPage>>> since(std::uint64_t number) const;
    [[nodiscard]] std::uint64_t newest() const { return last_number_; }
    /// The cursor after the newest page. Only when the feed is ready.
    [[nodiscard]] EventCursor cursor() const { return pages_.back()->cursor; }
    [[nodiscard]] std::uint64_t look_number() const { return looks_; }
    void close(const std::shared_ptr<EventStream>& stream);

private:
    void look();
    void looked(Result<FeedPage> page);
    /// Gives `page` to the streams of `to` from `first` on, a few at a time: requests are answered in between.
    void deliver(const std::shared_ptr<const FeedPage>& page, std::vector<std::shared_ptr<EventStream>> to,
                 std::size_t first);
    void plan(std::chrono::milliseconds time);
    /// A token that was revoked ends the streams of its owner, before they are sent anything more.
    void check_rights();

    Services& services_;
    std::set<std::shared_ptr<EventStream>> streams_{};
    std::uint64_t rights_seen_ = 0;                  ///< Of what the streams' callers may see.
    std::shared_ptr<client::EventReader> reader_{};  ///< Used by one job at a time.
    std::deque<std::shared_ptr<const FeedPage>> pages_{};
    std::size_t remembered_ = 0;  ///< Events in `pages_`.
    std::uint64_t last_number_ = 0;
    std::uint64_t looks_ = 0;  ///< That were begun.
    bool is_looking_ = false;
    bool look_again_ = false;
    bool is_soon_ = false;  ///< The next look is a moment away.
    std::chrono::steady_clock::time_point delivery_began_{};
    Loop::Timer timer_{};
};

}  // namespace holdfast::server
