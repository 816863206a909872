#pragma once

#include "base/fd.hpp"
#include "stores/postgres/connection.hpp"

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>

namespace holdfast::stores::postgres {

/// Hears whose turn it is, on one connection for all who wait. Only a hint: behind a pooler, or without a
/// connection, nobody is ever woken, and who waits has to look from time to time.
///
/// It has no thread. One of those who sleep watches the connection for all of them; when he leaves, he hands it on.
class Listener {
    struct Sleeper {
        std::string channel{};
        bool heard = false;   ///< The call has come.
        bool asleep = false;  ///< Waits, without watching the connection.
        std::condition_variable_any called{};
    };

public:
    explicit Listener(const Settings& settings);
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    ~Listener();

    /// A place to sleep. What is said on the channel after it was taken is not missed.
    class Place {
    public:
        Place(Listener& listener, std::list<Sleeper>::iterator sleeper) : listener_(listener), sleeper_(sleeper) {}
        /// What was answered after it was taken, if it was asked on the way.
        std::optional<Rows> seen{};
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() { listener_.leave(sleeper_); }

        /// Whether a wake-up can come at all.
        [[nodiscard]] bool hears() const { return listener_.hears(sleeper_); }
        /// True when called, false when the time is over or `stop` was requested.
        [[nodiscard]] bool sleep(std::chrono::milliseconds time, const std::stop_token& stop) {
            return listener_.sleep(*sleeper_, time, stop);
        }

    private:
        Listener& listener_;
        std::list<Sleeper>::iterator sleeper_;
    };

    /// Somebody who waits for a call on `channel`; on no channel, for nothing but the time.
    /// If the server has to be told, it is asked `question` in the same breath.
    [[nodiscard]] std::unique_ptr<Place> enter(const std::string& channel, const Statement& question);

private:
    using Lock = std::unique_lock<std::mutex>;

    void leave(std::list<Sleeper>::iterator sleeper);
    [[nodiscard]] bool hears(std::list<Sleeper>::iterator sleeper);
    [[nodiscard]] bool sleep(Sleeper& sleeper, std::chrono::milliseconds time, const std::stop_token& stop);
    void borrow(Lock& lock);
    void give_back();
    [[nodiscard]] std::optional<Rows> listen(Lock& lock, const std::string& channel, const Statement& question);
    void watch(Lock& lock, Boottime until);
    void nudge() const;

    const Settings& settings_;
    const base::Fd nudged_;  ///< Calls the one who watches the connection away from it.

    std::mutex mutex_;
    std::list<Sleeper> sleepers_{};             ///< Guarded by mutex_.
    std::set<std::string> channels_{};          ///< Guarded by mutex_. What the connection listens to.
    bool borrowed_ = false;                     ///< Guarded by mutex_. Somebody uses the connection.
    int wanted_ = 0;                            ///< Guarded by mutex_. How many more want it at once.
    std::condition_variable returned_{};        ///< With mutex_: the connection is free.
    std::unique_ptr<Connection> connection_{};  ///< Of the one who borrowed it.
    bool pooled_ = false;                       ///< Guarded by mutex_.
    Boottime next_attempt_{};                   ///< Guarded by mutex_. In real time.
};

}  // namespace holdfast::stores::postgres
