#include "stores/common/windowed_events.hpp"

#include "stores/common/event_cursor.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view in_between = "window";        ///< The form of a cursor between two passes.
constexpr std::string_view inside_pass = "window-pass";  ///< The form of a cursor inside a pass.

constexpr milliseconds quick_overlap{1000};

/// The place of an event in the order in which a pass reads.
struct EventPlace {
    Instant at{};
    LockName name;
    std::uint64_t seq = 0;

    [[nodiscard]] static EventPlace of(const AuditEvent& event) { return {event.at, event.name, event.seq}; }
    [[nodiscard]] auto key() const { return std::tie(at, name, seq); }
};

enum class PassKind { quick, full };

/// A pass that is under way.
struct Pass {
    PassKind kind = PassKind::full;
    Instant from{};
    Instant began{};                   ///< By the store's clock.
    std::optional<EventPlace> read{};  ///< Everything up to here.
};

/// The position of a reader.
struct Progress {
    Instant settled{};  ///< Every event from before this time has been read, however late it was committed.
    Instant began{};    ///< When the last pass began.
    std::optional<Pass> pass{};
};

std::string word_of(Instant instant) { return std::to_string(instant.time_since_epoch().count()); }

std::optional<Instant> instant_of(std::string_view word) {
    const auto number = number_of_word(word);
    if (!number) return std::nullopt;
    return Instant{milliseconds{*number}};
}

EventCursor cursor_at(const Progress& progress) {
    const std::string settled = word_of(progress.settled);
    const std::string began = word_of(progress.began);
    if (!progress.pass) return cursor_of(in_between, {settled, began});
    const Pass& pass = *progress.pass;
    return cursor_of(inside_pass, {settled, began, pass.kind == PassKind::full ? "full" : "quick", word_of(pass.from),
                                   word_of(pass.began), word_of(pass.read->at), std::to_string(pass.read->seq),
                                   stores::word_of(pass.read->name)});
}

std::optional<Pass> pass_in(std::span<const std::string_view> words) {
    const auto from = instant_of(words[1]);
    const auto began = instant_of(words[2]);
    const auto at = instant_of(words[3]);
    const auto seq = number_of_word(words[4]);
    const auto name = name_of_word(words[5]);
    const bool is_full = words[0] == "full";
    if (!from || !began || !at || !seq || !name || (!is_full && words[0] != "quick")) return std::nullopt;
    return Pass{is_full ? PassKind::full : PassKind::quick, *from, *began,
                EventPlace{*at, *name, static_cast<std::uint64_t>(*seq)}};
}

std::optional<Progress> progress_in(const EventCursor& cursor) {
    if (cursor.text.empty()) return Progress{};
    auto words = cursor_words(cursor, in_between, 2);
    if (!words) words = cursor_words(cursor, inside_pass, 8);
    if (!words) return std::nullopt;
    const auto settled = instant_of((*words)[0]);
    const auto began = instant_of((*words)[1]);
    if (!settled || !began) return std::nullopt;
    Progress progress{*settled, *began};
    if (words->size() == 2) return progress;
    progress.pass = pass_in(std::span(*words).subspan(2));
    if (!progress.pass) return std::nullopt;
    return progress;
}

/// `inspect` tells the time of a store whether the lock was ever used or not.
Result<Instant> time_of(Store& store, Deadline deadline) {
    static const LockName any = *LockName::parse("holdfast/time");
    const auto status = store.inspect(any, deadline);
    if (!status) return std::unexpected(status.error());
    return status->as_of;
}

/// Never before the epoch, since a cursor has no negative numbers.
Instant earlier(Instant instant, milliseconds by) { return std::max(instant, Instant{by}) - by; }

Pass begin_pass(Progress& progress, Instant now, milliseconds window) {
    const bool was_put_back = now < progress.began;
    if (was_put_back) progress.settled = std::min(progress.settled, earlier(now, window));
    if (was_put_back || now - progress.settled >= window + window / 4)
        return {PassKind::full, progress.settled, now, std::nullopt};
    return {PassKind::quick, earlier(progress.began, quick_overlap), now, std::nullopt};
}

/// The events that follow what `pass` has read, about `limit` of them; fewer than that at its end.
Result<std::vector<AuditEvent>> read_on(Store& store, const Pass& pass, std::size_t limit, bool& is_over,
                                        Deadline deadline) {
    const Instant since = pass.read ? pass.read->at : pass.from;
    // Any number of events can have the same time. One page has to reach beyond those that were read already.
    for (std::size_t size = std::max<std::size_t>(limit, 1);; size *= 2) {
        auto events = store.history({.since = since, .limit = size, .which = HistoryQuery::Which::oldest}, deadline);
        if (!events) return events;
        is_over = events->size() < size;
        if (pass.read)
            std::erase_if(*events,
                          [&](const AuditEvent& event) { return EventPlace::of(event).key() <= pass.read->key(); });
        if (is_over || !events->empty()) return events;
    }
}

void advance(Progress& progress, const EventPlace* last, bool is_over, milliseconds window) {
    Pass& pass = *progress.pass;
    if (last != nullptr) pass.read = *last;
    const Instant settled = earlier(pass.began, window);
    if (pass.kind == PassKind::full && is_over) progress.settled = settled;
    if (pass.kind == PassKind::full && !is_over)
        progress.settled = std::max(progress.settled, std::min(settled, pass.read->at));
    if (!is_over) return;
    progress.began = pass.began;
    progress.pass.reset();
}

}  // namespace

Result<EventPage> WindowedStore::events(const EventCursor& after, std::size_t limit, Deadline deadline) {
    auto progress = progress_in(after);
    if (!progress) return std::unexpected(invalid_cursor());
    if (!progress->pass) {
        // Before anything is read: what is committed later is of a later pass.
        const auto now = time_of(*this, deadline);
        if (!now) return std::unexpected(now.error());
        progress->pass = begin_pass(*progress, *now, window_.length);
    }
    EventPage page{.unsettled_since = progress->settled};
    auto events = read_on(*this, *progress->pass, limit, page.is_last, deadline);
    if (!events) return std::unexpected(events.error());
    page.events = std::move(*events);
    std::optional<EventPlace> last;
    if (!page.events.empty()) last = EventPlace::of(page.events.back());
    advance(*progress, last ? &*last : nullptr, page.is_last, window_.length);
    page.next = cursor_at(*progress);
    return page;
}

Result<EventCursor> WindowedStore::end_of_events(Deadline deadline) {
    const auto now = time_of(*this, deadline);
    if (!now) return std::unexpected(now.error());
    // The first pass goes through the whole window, so that its reader learns what was there already.
    const Instant settled = earlier(*now, window_.length);
    return cursor_at({settled, settled});
}

}  // namespace holdfast::stores
