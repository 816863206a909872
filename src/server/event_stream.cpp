#include "server/event_stream.hpp"

#include "json/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace holdfast::server {
namespace {

using json::Object;
using json::Value;
using std::chrono::milliseconds;

/// Proxies cut connections on which nothing moves, mostly after a minute.
constexpr milliseconds heartbeat{15'000};
constexpr milliseconds pause_after_failure{1'000};

}  // namespace

std::string id_of(const EventCursor& cursor) {
    std::string id;
    for (const char c : cursor.text) id += c == ' ' ? std::string("%20") : std::string(1, c);
    return id;
}

EventCursor cursor_of(std::string_view id) {
    EventCursor cursor{std::string(id)};
    for (auto at = cursor.text.find("%20"); at != std::string::npos; at = cursor.text.find("%20", at + 1))
        cursor.text.replace(at, 3, " ");
    return cursor;
}

Chunk message(std::string_view kind, const std::optional<EventCursor>& cursor, const Value& data) {
    const std::string id = cursor ? fmt::format("id: {}\n", id_of(*cursor)) : "";
    return Chunk(fmt::format("{}event: {}\ndata: {}\n\n", id, kind, data.written()));
}

Chunk gap_message(const LockName& name, std::uint64_t through) {
    return message("gap", std::nullopt,
                   Object().set("name", Value::text(name.text())).set("through_seq", Value::number(through)).done());
}

EventStream::EventStream(EventFeed& feed, Services& services, ExchangePtr exchange, std::optional<EventCursor> since,
                         std::string prefix)
    : feed_(feed),
      services_(services),
      exchange_(std::move(exchange)),
      since_(std::move(since)),
      prefix_(std::move(prefix)) {}

void EventStream::begin() {
    HttpReply head{.content_type = "text/event-stream"};
    // A proxy such as nginx would otherwise collect events before it passes them on.
    head.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
    exchange_->begin_stream(std::move(head));
    exchange_->on_gone([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->end();
    });
    beat();
}

void EventStream::beat() {
    beat_ = services_.loop.after(heartbeat, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->state_ == State::is_over) return;
        // By its time a token ends without a change of the file.
        self->check_rights();
        if (self->state_ == State::is_over) return;
        // With an id, so that a client whose events are rare does not resume far back.
        if (self->state_ == State::is_live)
            self->write(Chunk(fmt::format(": alive\nid: {}\n\n", id_of(self->cursor_))));
        else
            self->write(Chunk(": alive\n\n"));
        if (self->state_ != State::is_over) self->beat();
    });
}

void EventStream::feed_is_ready() {
    if (state_ != State::waits_for_feed) return;
    if (!since_) {
        cursor_ = feed_.cursor();
        return join(feed_.newest());
    }
    state_ = State::catches_up;
    reader_ = std::make_shared<client::EventReader>(*since_);
    read_page();
}

void EventStream::read_page() {
    const std::uint64_t feed_is_at = feed_.newest();
    const bool runs = services_.readers.run([self = shared_from_this(), feed_is_at, reader = reader_] {
        const EventCursor before = reader->cursor();
        auto events =
            reader->next(self->services_.store, Deadline::in(self->services_.clock, self->services_.options.patience));
        Result<FeedPage> page = events ? Result<FeedPage>(page_of(*events, before, reader->cursor()))
                                       : Result<FeedPage>(std::unexpected(events.error()));
        self->services_.loop.post(
            [self, feed_is_at, page = std::move(page), is_at_end = reader->is_at_end()]() mutable {
                self->took(std::move(page), feed_is_at, is_at_end);
            });
    });
    if (!runs) took(fail(Errc::store_unavailable, ""), feed_is_at, false);
}

void EventStream::took(Result<FeedPage> page, std::uint64_t feed_was_at, bool is_at_end) {
    if (state_ == State::is_over) return;
    if (!page) {
        retry_ = services_.loop.after(pause_after_failure, [weak = weak_from_this()] {
            if (const auto self = weak.lock(); self && self->state_ == State::catches_up) self->read_page();
        });
        return;
    }
    for (const FeedEvent& event : page->events) send(event);
    cursor_ = page->cursor;
    if (state_ == State::is_over) return;
    // As fast as the client takes them; and it joins the feed only when it has taken all, or it would seem slow there.
    if (exchange_->unsent() == 0) return is_at_end ? join(feed_was_at) : read_page();
    exchange_->on_drained([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->state_ != State::catches_up) return;
        self->exchange_->on_drained(nullptr);
        self->read_page();
    });
}

/// What this stream's last page could not show yet is in the pages that the feed has read since that was asked for.
void EventStream::join(std::uint64_t feed_was_at) {
    const auto pages = feed_.since(feed_was_at);
    if (!pages) return read_page();
    state_ = State::is_live;
    reader_.reset();
    joined_at_look_ = feed_.look_number();
    taken_ = feed_.newest();
    for (const auto& page : *pages) {
        for (const FeedEvent& event : page->events) send(event);
        cursor_ = page->cursor;
    }
    write(message("ready", cursor_, Object().set("cursor", Value::text(id_of(cursor_))).done()));
}

void EventStream::take(const FeedPage& page, const Chunk& whole) {
    // One that has joined while others were given the page has it already.
    if (state_ != State::is_live || page.number <= taken_) return;
    taken_ = page.number;
    const auto sees = [&](const FeedEvent& each) { return is_visible(each.event.name); };
    if (!is_past_own_reading_) {
        for (const FeedEvent& event : page.events) send(event);
    } else if (std::ranges::all_of(page.events, sees)) {
        write(whole);
    } else {
        for (const FeedEvent& event : page.events | std::views::filter(sees)) {
            write(event.gap);
            write(event.text);
        }
    }
    cursor_ = page.cursor;
    if (is_past_own_reading_ || !page.is_at_end || page.asked <= joined_at_look_) return;
    is_past_own_reading_ = true;
    sent_.clear();
}

bool EventStream::is_visible(const LockName& name) const {
    return name.text().starts_with(prefix_) && exchange_->who.role_for(name) >= Role::viewer;
}

void EventStream::send(const FeedEvent& each) {
    const AuditEvent& event = each.event;
    if (state_ == State::is_over || !is_visible(event.name)) return;
    const auto place = sent_.take(event);
    if (place == NewestEvents::Place::is_repetition) return;
    if (place == NewestEvents::Place::follows_gap) write(gap_message(event.name, event.seq - 1));
    if (state_ == State::catches_up && event.kind == EventKind::pruned) {
        const auto through = event.details.find("through");
        if (through != event.details.end()) write(gap_message(event.name, std::stoull(through->second)));
    }
    write(each.text);
}

void EventStream::write(const Chunk& chunk) {
    if (state_ == State::is_over || chunk.is_empty()) return;
    const bool is_slow = state_ == State::is_live && exchange_->unsent() > services_.options.limits.event_bytes;
    if (is_slow) {
        services_.log.write("slow_reader", {{"peer", Value::text(exchange_->request.peer)}});
        return end();
    }
    exchange_->write(chunk);
}

void EventStream::check_rights() {
    if (state_ == State::is_over) return;
    auto who = services_.authorizer.again(exchange_->who);
    if (!who) return end();
    exchange_->who = std::move(*who);
}

void EventStream::end() {
    if (std::exchange(state_, State::is_over) == State::is_over) return;
    const auto self = shared_from_this();
    beat_.reset();
    retry_.reset();
    exchange_->end_stream();
    feed_.close(self);
}

}  // namespace holdfast::server
