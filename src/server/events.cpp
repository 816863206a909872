#include "server/events.hpp"

#include "json/event.hpp"
#include "server/event_stream.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;

/// How often the store is asked although nothing was changed through this daemon.
constexpr milliseconds poll_interval{200};
/// Under load the streams get larger pages, and the store is not asked after every batch.
constexpr milliseconds pause_under_load{10};
constexpr milliseconds pause_after_failure{1'000};
constexpr std::size_t most_remembered = 20'000;
constexpr std::size_t streams_at_once = 32;

}  // namespace

FeedPage page_of(const std::vector<AuditEvent>& events, const EventCursor& before, const EventCursor& after) {
    FeedPage page{.cursor = after};
    page.events.reserve(events.size());
    for (const AuditEvent& event : events) {
        // In between, only the cursor from before the page leaves nothing out.
        const bool is_last = page.events.size() + 1 == events.size();
        const EventCursor& cursor = is_last ? after : before;
        page.events.push_back({event, cursor, message(name_of(event.kind), cursor, json::event(event).done())});
    }
    return page;
}

EventFeed::~EventFeed() = default;

void EventFeed::open(const ExchangePtr& exchange, std::optional<EventCursor> since, std::string prefix) {
    const auto stream = std::make_shared<EventStream>(*this, services_, exchange, std::move(since), std::move(prefix));
    streams_.insert(stream);
    services_.observer.streams(streams_.size());
    stream->begin();
    if (reader_) return stream->feed_is_ready();
    if (!is_looking_) look();
}

void EventFeed::close(const std::shared_ptr<EventStream>& stream) {
    streams_.erase(stream);
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
    const bool is_first = !reader_;
    const auto reader = is_first ? std::make_shared<client::EventReader>() : reader_;
    const bool runs = services_.readers.run([this, reader, is_first, asked] {
        const Deadline deadline = Deadline::in(services_.clock, services_.options.patience);
        Result<FeedPage> page{};
        if (is_first) {
            if (auto skipped = reader->skip_to_end(services_.store, deadline); !skipped)
                page = std::unexpected(skipped.error());
            else
                page->cursor = reader->cursor();
        } else {
            const EventCursor before = reader->cursor();
            auto events = reader->next(services_.store, deadline);
            if (events)
                page = page_of(*events, before, reader->cursor());
            else
                page = std::unexpected(events.error());
        }
        if (page) {
            page->is_at_end = is_first || reader->is_at_end();
            page->asked = asked;
        }
        services_.loop.post([this, reader, page = std::move(page)]() mutable {
            if (page) reader_ = reader;
            looked(std::move(page));
        });
    });
    if (!runs) looked(fail(Errc::store_unavailable, "too many requests wait for the store"));
}

void EventFeed::check_rights() {
    const std::uint64_t seen = services_.authorizer.door().changes();
    if (seen == rights_seen_) return;
    rights_seen_ = seen;
    const auto all = streams_;
    for (const auto& stream : all) stream->check_rights();
}

void EventFeed::looked(Result<FeedPage> page) {
    check_rights();
    if (streams_.empty()) {
        // The next stream begins at the newest event of that moment.
        is_looking_ = false;
        reader_.reset();
        pages_.clear();
        remembered_ = 0;
        return;
    }
    if (!page) {
        is_looking_ = false;
        return plan(pause_after_failure);
    }
    page->number = ++last_number_;
    for (const FeedEvent& each : page->events) services_.observer.happened(each.event);
    const auto shared = std::make_shared<const FeedPage>(std::move(*page));
    pages_.push_back(shared);
    remembered_ += shared->events.size();
    while (pages_.size() > 1 && (remembered_ > most_remembered || pages_.front()->events.empty())) {
        remembered_ -= pages_.front()->events.size();
        pages_.pop_front();
    }
    delivery_began_ = std::chrono::steady_clock::now();
    deliver(shared, {streams_.begin(), streams_.end()}, 0);
}

void EventFeed::deliver(const std::shared_ptr<const FeedPage>& page, std::vector<std::shared_ptr<EventStream>> to,
                        std::size_t first) {
    const std::size_t end = std::min(first + streams_at_once, to.size());
    for (std::size_t i = first; i < end; ++i) {
        to[i]->feed_is_ready();
        to[i]->take(*page);
    }
    if (end < to.size())
        return services_.loop.post(
            [this, page, to = std::move(to), end]() mutable { deliver(page, std::move(to), end); });
    is_looking_ = false;
    if (!page->is_at_end) return look();
    is_soon_ = look_again_;
    // However many streams there are, they have half of the loop's time at most.
    const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - delivery_began_);
    plan(is_soon_ ? std::max(pause_under_load, took) : poll_interval);
}

void EventFeed::plan(milliseconds time) {
    timer_ = services_.loop.after(time, [this] {
        if (!is_looking_) look();
    });
}

}  // namespace holdfast::server
