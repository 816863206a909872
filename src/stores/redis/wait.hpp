#pragma once

#include "stores/redis/connection.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>

namespace holdfast::stores::redis {

/// Hears what is announced on channels, through one connection for all threads that wait.
///
/// There is no thread behind it: one of those that wait reads for all of them. What is heard is a hint, and
/// nothing may be heard at all, so nobody waits for long without looking.
class Hints {
public:
    explicit Hints(Address address);
    Hints(const Hints&) = delete;
    Hints& operator=(const Hints&) = delete;
    ~Hints();

private:
    struct Channel {
        int listeners = 0;
        bool subscribed = false;  ///< The server has confirmed it: what is announced from now on is heard.
        std::uint64_t heard = 0;  ///< Counts announcements.
        int asleep = 0;           ///< Of the listeners; one of all channels reads instead.
        /// Of its own: what is announced on one channel must not wake those who listen to the others.
        std::condition_variable_any changed{};
    };

public:
    /// Listens to one channel for as long as it lives.
    class Ear {
    public:
        Ear(Hints& hints, std::string channel);
        Ear(const Ear&) = delete;
        Ear& operator=(const Ear&) = delete;
        ~Ear();

        /// Waits until the server listens for us. False if it does not within `most`.
        bool wait_until_listening(std::chrono::milliseconds most, const std::stop_token& stop);
        /// Waits for something that was announced since the last call. False if nothing was.
        bool wait(std::chrono::milliseconds most, const std::stop_token& stop);

    private:
        Hints& hints_;
        std::string name_;
        Channel& channel_;
        std::uint64_t known_ = 0;
    };

private:
    template <class Happened>
    bool wait_until(Channel& channel, Happened happened, std::chrono::milliseconds most, const std::stop_token& stop);
    void find_reader();
    void read_for_all(std::unique_lock<std::mutex>& lock, const CallBudget& budget);
    void tell(std::string_view verb, const std::string& channel);
    void send_now();
    void wake_reader() const;
    void take_in(const Message& message);
    void lose_connection();

    const Address address_;
    const base::Fd wake_;  ///< An eventfd: gets the reader out of its wait.

    std::mutex mutex_;
    std::map<std::string, Channel, std::less<>> channels_{};  ///< Guarded by mutex_.
    std::vector<Command> to_send_{};                          ///< Guarded by mutex_.
    bool has_reader_ = false;                                 ///< Guarded by mutex_.
    std::optional<Deadline> rests_until_{};                   ///< Guarded by mutex_. After a failure to connect.
    std::unique_ptr<Connection> connection_{};                ///< Used by the reader alone.
};

}  // namespace holdfast::stores::redis
