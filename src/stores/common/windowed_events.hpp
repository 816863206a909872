#pragma once

#include "holdfast/store.hpp"

#include <chrono>

namespace holdfast::stores {

/// How late an event can become visible.
struct EventWindow {
    /// Longer than any commit takes after the time of its events was read; each store says what bounds that.
    std::chrono::milliseconds length;
};

/// A store whose events have no order over all locks but their time. `events` is built on `inspect`, which tells the
/// store's time, and on `history` in the order of time.
///
/// The time of an event is read before its change is committed, so events that are older than the last one read may
/// appear later. It therefore reads in passes that overlap:
/// - a quick pass begins a second before the last pass did, so that new events arrive at once, and a pass costs no more
///   than the events of the last seconds;
/// - a full pass, four times in each window, begins a whole window before the last full one did. It finds what was
///   committed up to a window late. A clock that shows less than it did when the last pass began was put back: then a
///   full pass begins a window before what it shows now. Nothing is missed then, and many events are read again. Only
///   if the clock is put back and forward again between two passes can the events from that time be older than any pass
///   looks for; the reader learns of them with the next event of that lock.
class WindowedStore : public Store {
public:
    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) final;
    Result<EventCursor> end_of_events(Deadline deadline) final;

protected:
    WindowedStore(const Clock& clock, EventWindow window) : Store(clock), window_(window) {}

private:
    const EventWindow window_;
};

}  // namespace holdfast::stores
