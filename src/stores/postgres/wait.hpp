#pragma once

#include "base/interrupt.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/postgres/optimistic.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace holdfast::stores::postgres {

/// Receives notifications, on one connection for all watches of a Store object. Only a hint: behind a pooler, or
/// without a connection, it hears nothing, and the watches have to be polled.
class Listener {
public:
    explicit Listener(const Settings& settings) : settings_(settings) {}

    void add(const HubWatch& watch);
    /// Ends the LISTENs of removed watches. After the last watch nobody reads the connection, and unread notifications
    /// would pile up in the server.
    void remove(std::span<const HubWatch> watches);

    /// A notification for this watch would be heard.
    [[nodiscard]] bool hears(const Watch& watch) const;

    /// Listens for the watches that were added, if there are any, and then asks `question`, in the same round trip, so
    /// that a change in between is seen or heard. The answer, if anything was sent and it succeeded.
    ///
    /// `asks_about_all`: `question` is about all watches.
    [[nodiscard]] std::optional<Rows> listen_and_ask(const Statement& question, bool asks_about_all);

    /// The socket to poll. -1: there is no connection.
    [[nodiscard]] int socket() const { return connection_ ? connection_->socket() : -1; }
    /// The notifications that have arrived, without waiting for more.
    [[nodiscard]] Heard take_heard();

private:
    void lose_connection();

    const Settings& settings_;
    std::unique_ptr<Connection> connection_{};
    std::map<std::string, std::set<std::uint64_t>> channels_{};  ///< Which watches wait on a channel.
    std::set<std::string> unheard_{};                            ///< Channels that the server has not been told of.
    bool is_pooled_ = false;
    bool was_interrupted_ = false;  ///< There was no connection for a while, so notifications may have been lost.
    bool must_look_at_all_ = false;
    Boottime next_attempt_{};  ///< Of connecting. In real time.
};

/// PostgreSQL's source for the hub of a Store object.
class WatchSource final : public WakeSource {
public:
    /// Asks the store, on any connection, in one round trip. Empty if nobody has created it.
    using Ask = std::function<Result<std::optional<std::vector<Rows>>>(std::vector<Statement>)>;

    /// The arguments must outlive this.
    WatchSource(const Settings& settings, const Statements& statements, const Clock& clock, Optimistic& optimistic,
                Ask ask);

    void add(std::span<const HubWatch> watches) override;
    void remove(std::span<const HubWatch> watches) override;
    [[nodiscard]] std::vector<Sighting> look(std::span<const HubWatch> watches) override;
    [[nodiscard]] Heard listen(std::chrono::milliseconds most) override;
    void interrupt() override { interrupt_.raise(); }

private:
    /// Looks at the watches at `indices`.
    struct Some {
        std::span<const HubWatch> watches;
        std::vector<std::size_t> indices{};
    };

    [[nodiscard]] Result<std::vector<Position>> positions_of(std::span<const HubWatch> watches);
    [[nodiscard]] std::chrono::milliseconds pause_of(const HubWatch& watch, const Position& position);
    void fire(const Some& some, std::vector<Sighting>& seen);
    void fire_with_ticket(std::span<const HubWatch> watches, std::span<const std::size_t> indices,
                          std::vector<Sighting>& seen);
    [[nodiscard]] Result<std::optional<HandedOn>> handed_on(const Watch& watch, const View& view, Boottime seen_from);

    const Statements& statements_;
    const Clock& clock_;
    Optimistic& optimistic_;
    const Ask ask_;
    const base::Interrupt interrupt_{};
    const PollTicks ticks_{};
    Listener listener_;
    std::unordered_map<std::uint64_t, std::chrono::milliseconds> pauses_{};  ///< The last one of each watch.
    std::set<std::uint64_t> notified_{};                                     ///< Watches that are not looked at yet.
};

}  // namespace holdfast::stores::postgres
