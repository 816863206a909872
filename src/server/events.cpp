#include "server/events.hpp"

#include "json/event.hpp"
#include "server/event_stream.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How often the store is asked although nothing was changed through this daemon.
constexpr milliseconds poll_interval{200};
/// Under load the streams get larger pages, and the store is not asked after every batch.
constexpr milliseconds pause_under_load{10};
constexpr milliseconds pause_after_failure{1'000};
constexpr std::size_t most_remembered = 20'000;
/// Many streams are served in turns. In the pauses the loop answers requests, and a machine with few processors runs
/// the threads of the store and the clients.
constexpr microseconds longest_turn{200};
constexpr milliseconds pause_between_turns{1};

Chunk whole_of(const FeedPage& page) {
    if (page.events.empty()) return {};
    if (page.events.size() == 1 && page.events.front().gap.is_empty()) return page.events.front().text;
    std::string all;
    for (const FeedEvent& each : page.events) {
        all += each.gap.text();
        all += each.text.text();
    }
    return Chunk(all);
}

}  // namespace

NewestEvents::Place NewestEvents::take(const AuditEvent& event) {
    const auto [known, is_first] = newest_.try_emplace(event.name, Last{event.seq, event.token});
    if (is_first) return Place::follows;
    const Last before = known->second;
    // A store that was emptied or restored gives numbers again, with higher tokens.
    const bool begins_again = event.seq <= before.seq && event.token > before.token;
    if (event.seq <= before.seq && !begins_again) return Place::is_repetition;
    known->second = {event.seq, event.token};
    return !begins_again && event.seq > before.seq + 1 ? Place::follows_gap : Place::follows;
}

FeedPage page_of(const std::vector<AuditEvent>& events, const EventCursor& before, const EventCursor& after) {
    FeedPage page{.cursor = after};
    page.events.reserve(events.size());
    for (const AuditEvent& event : events) {
        // In between, only the cursor from before the page leaves nothing out.
        const bool is_last = page.events.size() + 1 == events.size();
        page.events.push_back(
            {event, message(name_of(event.kind), is_last ? after : before, json::event(event).done())});
    }
    return page;
}

EventFeed::~EventFeed() = default;

void EventFeed::open(const ExchangePtr& exchange, std::optional<EventCursor> since, std::string prefix) {
    const auto stream = std::make_shared<EventStream>(*this, services_, exchange, std::move(since), std::move(prefix));
    streams_.insert(stream);
    all_streams_.reset();
    services_.observer.streams(streams_.size());
    stream->begin();
    if (reading_) return stream->feed_is_ready();
    if (!is_looking_) look();
}

void EventFeed::close(const std::shared_ptr<EventStream>& stream) {
    streams_.erase(stream);
    all_streams_.reset();
    services_.observer.streams(streams_.size());
}

void EventFeed::stop() {
    const auto all = streams_;
    for (const auto& stream : all) stream->end();
}

std::optional<std::vector<std::shared_ptr<const FeedPage>>> EventFeed::since(std::uint64_t number) const {
    std::vector<std::shared_ptr<const FeedPage>> found;
    if (number >= last_number_) return found;
    if (pages_.empty() || pages_.front()->number > number + 1) return std::nullopt;
    std::ranges::copy_if(pages_, std::back_inserter(found),
                         [&](const std::shared_ptr<const FeedPage>& page) { return page->number > number; });
    return found;
}

void EventFeed::poke() {
    if (streams_.empty()) return;
    if (is_looking_)
        look_again_ = true;
    else if (!is_soon_)
        look();
}

/// The first look finds the end of what there is; streams that want older events read those for themselves.
void EventFeed::look() {
    is_looking_ = true;
    look_again_ = false;
    is_soon_ = false;
    timer_.reset();
    const std::uint64_t asked = ++looks_;
    const bool is_first = !reading_;
    const auto reading = is_first ? std::make_shared<Reading>() : reading_;
    const bool runs = services_.readers.run([this, reading, is_first, asked] {
        auto look = read(services_, *reading, is_first);
        if (look) look->page.asked = asked;
        services_.loop.post([this, reading, look = std::move(look)]() mutable {
            if (look) reading_ = reading;
            looked(std::move(look));
        });
    });
    if (!runs) looked(fail(Errc::store_unavailable, "too many requests wait for the store"));
}

/// On a thread of the readers, so that the loop has only to send what was made here.
Result<EventFeed::Look> EventFeed::read(const Services& services, Reading& reading, bool is_first) {
    const Deadline deadline = Deadline::in(services.clock, services.options.patience);
    client::EventReader& reader = reading.reader;
    if (is_first) {
        if (auto skipped = reader.skip_to_end(services.store, deadline); !skipped)
            return std::unexpected(skipped.error());
        return Look{.page = {.cursor = reader.cursor(), .is_at_end = true}};
    }
    const EventCursor before = reader.cursor();
    const auto events = reader.next(services.store, deadline);
    if (!events) return std::unexpected(events.error());
    Look look{.page = page_of(*events, before, reader.cursor())};
    look.page.is_at_end = reader.is_at_end();
    for (FeedEvent& each : look.page.events)
        if (reading.newest.take(each.event) == NewestEvents::Place::follows_gap)
            each.gap = gap_message(each.event.name, each.event.seq - 1);
    if (look.page.is_at_end) reading.newest.clear();
    look.whole = whole_of(look.page);
    return look;
}

void EventFeed::check_rights() {
    const std::uint64_t seen = services_.authorizer.door().changes();
    if (seen == rights_seen_) return;
    rights_seen_ = seen;
    const auto all = streams_;
    for (const auto& stream : all) stream->check_rights();
}

void EventFeed::looked(Result<Look> look) {
    check_rights();
    if (streams_.empty()) {
        // The next stream begins at the newest event of that moment.
        is_looking_ = false;
        reading_.reset();
        pages_.clear();
        remembered_ = 0;
        return;
    }
    if (!look) {
        is_looking_ = false;
        return plan(pause_after_failure);
    }
    FeedPage& page = look->page;
    const bool says_nothing = !pages_.empty() && page.events.empty() && page.cursor == cursor();
    page.number = ++last_number_;
    for (const FeedEvent& each : page.events) services_.observer.happened(each.event);
    const auto shared = std::make_shared<const FeedPage>(std::move(page));
    pages_.push_back(shared);
    remembered_ += shared->events.size();
    while (pages_.size() > 1 && (remembered_ > most_remembered || pages_.front()->events.empty())) {
        remembered_ -= pages_.front()->events.size();
        pages_.pop_front();
    }
    // Without events, thousands of streams would be visited for nothing five times a second, and more under load.
    if (says_nothing) return delivered(*shared);
    deliver({.page = shared, .whole = std::move(look->whole), .streams = all_streams()});
}

const EventFeed::Streams& EventFeed::all_streams() {
    if (!all_streams_)
        all_streams_ =
            std::make_shared<const std::vector<std::shared_ptr<EventStream>>>(streams_.begin(), streams_.end());
    return all_streams_;
}

void EventFeed::deliver(Delivery delivery) {
    const auto& streams = *delivery.streams;
    const auto end_of_turn = std::chrono::steady_clock::now() + longest_turn;
    while (delivery.next < streams.size()) {
        EventStream& stream = *streams[delivery.next++];
        stream.feed_is_ready();
        stream.take(*delivery.page, delivery.whole);
        if (std::chrono::steady_clock::now() >= end_of_turn) break;
    }
    if (delivery.next == streams.size()) return delivered(*delivery.page);
    timer_ = services_.loop.after(pause_between_turns, [this, rest = std::move(delivery)]() mutable {
        check_rights();
        deliver(std::move(rest));
    });
}

void EventFeed::delivered(const FeedPage& page) {
    is_looking_ = false;
    if (!page.is_at_end) return look();
    is_soon_ = look_again_;
    plan(is_soon_ ? pause_under_load : poll_interval);
}

void EventFeed::plan(milliseconds time) {
    timer_ = services_.loop.after(time, [this] {
        if (!is_looking_) look();
    });
}

}  // namespace holdfast::server
