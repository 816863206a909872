#pragma once

#include "client/event_reader.hpp"
#include "server/exchange.hpp"
#include "server/services.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::server {

/// An event as a stream carries it.
struct FeedEvent {
    AuditEvent event;
    Chunk text{};  ///< With its id, for every stream that sends it.
    Chunk gap{};   ///< To be sent before it, where older events of its lock were pruned before the feed read them.
};

/// The newest event of each lock that was given out.
class NewestEvents {
public:
    enum class Place { follows, follows_gap, is_repetition };
    Place take(const AuditEvent& event);
    void clear() { newest_.clear(); }

private:
    struct Last {
        std::uint64_t seq = 0;
        FencingToken token{};
    };
    std::map<LockName, Last> newest_{};
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
    /// What the feed reads with, used by one job at a time.
    struct Reading {
        client::EventReader reader{};
        NewestEvents newest{};  ///< Since the feed was at the end.
    };
    struct Look {
        FeedPage page{};
        Chunk whole{};  ///< All of its events, for streams that see all of them.
    };
    using Streams = std::shared_ptr<const std::vector<std::shared_ptr<EventStream>>>;
    /// A page on its way to the streams that there were when it was read.
    struct Delivery {
        std::shared_ptr<const FeedPage> page{};
        Chunk whole{};
        Streams streams{};
        std::size_t next = 0;  ///< The first stream that has not been given the page.
    };

    void look();
    [[nodiscard]] static Result<Look> read(const Services& services, Reading& reading, bool is_first);
    void looked(Result<Look> look);
    /// Gives a page to its streams, a few at a time: requests are answered in between.
    void deliver(Delivery delivery);
    void delivered(const FeedPage& page);
    [[nodiscard]] const Streams& all_streams();
    void plan(std::chrono::milliseconds time);
    /// A token that was revoked ends the streams of its owner, before they are sent anything more.
    void check_rights();

    Services& services_;
    std::set<std::shared_ptr<EventStream>> streams_{};
    /// A copy of `streams_`; null when they have changed since.
    Streams all_streams_{};
    std::uint64_t rights_seen_ = 0;       ///< Of what the streams' callers may see.
    std::shared_ptr<Reading> reading_{};  ///< Null until the end of the events was found.
    std::deque<std::shared_ptr<const FeedPage>> pages_{};
    std::size_t remembered_ = 0;  ///< Events in `pages_`.
    std::uint64_t last_number_ = 0;
    std::uint64_t looks_ = 0;  ///< That were begun.
    bool is_looking_ = false;
    bool look_again_ = false;
    bool is_soon_ = false;  ///< The next look is a moment away.
    Loop::Timer timer_{};
};

}  // namespace holdfast::server
