#include "stores/postgres/wait.hpp"

#include "base/jitter.hpp"
#include "base/real_clock.hpp"
#include "kernel/step.hpp"
#include "stores/postgres/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_listening_trip{2000};
constexpr milliseconds pause_between_attempts{1000};
constexpr milliseconds shortest_poll{40};
constexpr milliseconds longest_poll{1000};
constexpr std::size_t watches_in_a_query = 1000;

Boottime real_time() { return base::real_clock().boottime(); }

}  // namespace

void Listener::add(const HubWatch& watch) {
    const auto called = notified_as(watch.watch);
    if (!called) return;
    const std::string channel = channel_of(*called);
    auto& waiting = channels_[channel];
    if (waiting.empty()) unheard_.insert(channel);
    waiting.insert(watch.id);
}

void Listener::remove(std::span<const HubWatch> watches) {
    std::vector<std::string> left;
    for (const HubWatch& one : watches) {
        const auto called = notified_as(one.watch);
        if (!called) continue;
        const auto found = channels_.find(channel_of(*called));
        if (found == channels_.end() || found->second.erase(one.id) == 0 || !found->second.empty()) continue;
        if (unheard_.erase(found->first) == 0) left.push_back(found->first);
        channels_.erase(found);
    }
    if (!connection_ || left.empty()) return;
    if (channels_.empty()) left = {"*"};
    for (const std::string& channel : left) connection_->send_only(Statement(fmt::format("UNLISTEN {}", channel)));
}

bool Listener::hears(const Watch& watch) const {
    const auto called = notified_as(watch);
    return connection_ && called && !unheard_.contains(channel_of(*called));
}

std::optional<Rows> Listener::listen_and_ask(const Statement& question, bool asks_about_all) {
    if (unheard_.empty() || is_pooled_) return std::nullopt;
    const base::CallBudget budget(longest_listening_trip);
    std::vector<Statement> trip;
    if (!connection_) {
        if (real_time() < next_attempt_) return std::nullopt;
        next_attempt_ = real_time() + pause_between_attempts;
        auto opened = connect(settings_, budget);
        if (!opened) {
            was_interrupted_ = true;
            return std::nullopt;
        }
        // Behind a pooler another client would get our notifications.
        is_pooled_ = (*opened)->is_pooled();
        if (is_pooled_) return std::nullopt;
        connection_ = std::move(*opened);
        trip.push_back(notice_dead_peers());
    }
    // Commit LISTEN before the query is sent.
    trip.emplace_back("BEGIN");
    for (const std::string& channel : unheard_) trip.emplace_back(fmt::format("LISTEN {}", channel));
    trip.emplace_back("COMMIT");
    trip.push_back(question);
    Trip asked = connection_->run(trip, budget);
    if (!connection_->is_usable() || asked.answers.size() + 1 < trip.size()) {
        lose_connection();
        return std::nullopt;
    }
    unheard_.clear();
    if (std::exchange(was_interrupted_, false) && !asks_about_all) must_look_at_all_ = true;
    if (asked.fault) return std::nullopt;
    return std::move(asked.answers.back());
}

Heard Listener::take_heard() {
    Heard heard;
    if (connection_) {
        for (const std::string& channel : connection_->notifications())
            if (const auto found = channels_.find(channel); found != channels_.end())
                heard.ids.insert(heard.ids.end(), found->second.begin(), found->second.end());
        if (!connection_->is_usable()) lose_connection();
    }
    heard.all = std::exchange(must_look_at_all_, false);
    return heard;
}

void Listener::lose_connection() {
    connection_.reset();
    for (const auto& [channel, waiting] : channels_) unheard_.insert(channel);
    was_interrupted_ = true;
    must_look_at_all_ = true;
}

WatchSource::WatchSource(const Settings& settings, const Statements& statements, const Clock& clock,
                         Optimistic& optimistic, Ask ask)
    : statements_(statements), clock_(clock), optimistic_(optimistic), ask_(std::move(ask)), listener_(settings) {}

void WatchSource::add(std::span<const HubWatch> watches) {
    // LISTEN is sent with the first look, in the same round trip.
    for (const HubWatch& one : watches) {
        listener_.add(one);
        pauses_.emplace(one.id, shortest_poll / 2);
    }
}

void WatchSource::remove(std::span<const HubWatch> watches) {
    for (const HubWatch& one : watches) {
        pauses_.erase(one.id);
        notified_.erase(one.id);
    }
    listener_.remove(watches);
}

std::vector<Sighting> WatchSource::look(std::span<const HubWatch> watches) {
    std::vector<Sighting> seen(watches.size());
    Some firing{watches};
    for (std::size_t i = 0; i < watches.size(); ++i)
        // A holder hears of its turn, too, which is no loss: it is looked at.
        if (notified_.erase(watches[i].id) > 0 && !watches[i].watch.lease) firing.indices.push_back(i);
    if (!firing.indices.empty()) {
        // Watches that fire are answered first; the others are looked at right after them.
        for (Sighting& one : seen) one.next_look = milliseconds{0};
        fire(firing, seen);
        return seen;
    }
    for (std::size_t begin = 0; begin < watches.size(); begin += watches_in_a_query) {
        const auto chunk = watches.subspan(begin, std::min(watches_in_a_query, watches.size() - begin));
        const auto positions = positions_of(chunk);
        if (!positions) {
            // The other chunks would fail, too, each after a timeout.
            for (std::size_t i = begin; i < watches.size(); ++i)
                seen[i].fired.emplace(std::unexpected(positions.error()));
            break;
        }
        for (std::size_t i = 0; i < chunk.size(); ++i)
            if ((*positions)[i].fires(chunk[i].watch))
                firing.indices.push_back(begin + i);
            else
                seen[begin + i].next_look = pause_of(chunk[i], (*positions)[i]);
    }
    fire(firing, seen);
    return seen;
}

Result<std::vector<Position>> WatchSource::positions_of(std::span<const HubWatch> watches) {
    const Statement question = ask_positions(statements_, clock_, watches);
    if (const auto rows = listener_.listen_and_ask(question, watches.size() == pauses_.size()))
        return read_positions(*rows);
    const auto answers = ask_({question});
    if (!answers) return std::unexpected(answers.error());
    return *answers ? read_positions((*answers)->front()) : std::vector<Position>(watches.size());
}

milliseconds WatchSource::pause_of(const HubWatch& watch, const Position& position) {
    milliseconds& pause = pauses_.try_emplace(watch.id, shortest_poll / 2).first->second;
    const bool is_hurried = !listener_.hears(watch.watch) && !watch.watch.lease;
    pause = is_hurried ? std::min(pause * 2, longest_poll) : longest_poll;
    const milliseconds most = position.ahead > near_the_head ? pause_far_back(pause, pauses_.size()) : pause;
    const milliseconds time = ticks_.aligned(clock_.boottime(), base::random_between(most / 2, most));
    // Nobody announces that a lease has run out.
    const bool is_next = position.is_queued && position.ahead == 0 && position.lease_left;
    return is_next ? std::clamp(*position.lease_left, milliseconds{1}, time) : time;
}

void WatchSource::fire(const Some& some, std::vector<Sighting>& seen) {
    std::vector<std::size_t> with_ticket;
    for (const std::size_t i : some.indices)
        if (some.watches[i].watch.ticket)
            with_ticket.push_back(i);
        else
            seen[i].fired.emplace(std::nullopt);
    for (std::span<const std::size_t> left = with_ticket; !left.empty();) {
        const std::size_t count = std::min(watches_in_a_query, left.size());
        fire_with_ticket(some.watches, left.first(count), seen);
        left = left.subspan(count);
    }
}

/// Whether the locks were handed over to the waiters.
void WatchSource::fire_with_ticket(std::span<const HubWatch> watches, std::span<const std::size_t> indices,
                                   std::vector<Sighting>& seen) {
    std::set<LockName> names;
    for (const std::size_t i : indices) names.insert(watches[i].watch.name);
    std::vector<Wanted> wanted;
    for (const LockName& name : names) wanted.push_back({.name = name, .depth = 1});
    const Boottime before = clock_.boottime();
    const auto answers = ask_({ask_view(statements_, clock_, wanted)});
    const auto view = answers && *answers ? std::optional(read_view((*answers)->front())) : std::nullopt;
    for (const std::size_t i : indices) {
        if (!answers)
            seen[i].fired.emplace(std::unexpected(answers.error()));
        else if (!view)
            seen[i].fired.emplace(std::nullopt);
        else
            seen[i].fired.emplace(handed_on(watches[i].watch, *view, before));
    }
}

Result<std::optional<HandedOn>> WatchSource::handed_on(const Watch& watch, const View& view, Boottime seen_from) {
    const Result<LockView>& lock = view.locks.at(watch.name);
    if (!lock) return std::unexpected(lock.error());
    auto handed_on = HandedOn::to(*watch.ticket, kernel::status_of(lock->record, lock->waiters, view.now), seen_from);
    if (!handed_on || lock->moved || !lock->moved_tickets.empty()) return handed_on;
    // Also remembers the next waiter, so that a release takes one round trip.
    KnownLock known{lock->record, view.records.at(watch.name), std::nullopt};
    if (const kernel::Ticket* const first = head_of(*lock, view.now))
        known.first = {*first, view.places.at(first->lock_id)};
    optimistic_.remember(std::move(known));
    return handed_on;
}

Heard WatchSource::listen(milliseconds most) {
    Heard heard = listener_.take_heard();
    if (!heard.all && heard.ids.empty()) {
        const std::array sockets{listener_.socket()};
        interrupt_.sleep(sockets, most);
        heard = listener_.take_heard();
    }
    notified_.insert(heard.ids.begin(), heard.ids.end());
    // Polling goes on in real time although a clock that a test moves by hand stands still.
    if (clock_.judges()) heard.all = true;
    return heard;
}

}  // namespace holdfast::stores::postgres
