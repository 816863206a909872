#pragma once

#include "holdfast/store.hpp"
#include "stores/common/batch.hpp"
#include "stores/mysql/connection.hpp"

#include <condition_variable>
#include <list>
#include <mutex>
#include <span>

namespace holdfast::stores::mysql {

/// Who waits through this Store object, and is woken at once by what happens through it. What others do has
/// to be polled for: the database tells nobody.
class Waiting {
public:
    class Place;

    /// Registered from now on; to be done before looking.
    [[nodiscard]] Place enter(const Watch& watch);

    /// Wakes those whom the changes concern.
    void wake(std::span<const Change> changes);

private:
    struct Entry {
        const Watch* watch = nullptr;
        bool woken = false;
        std::condition_variable_any wake_up{};
    };

    std::mutex mutex_;
    std::list<Entry> entries_{};  ///< Guarded by mutex_, as is what is in them.
};

class Waiting::Place {
public:
    Place(Waiting& waiting, std::list<Entry>::iterator entry) : waiting_(waiting), entry_(entry) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

    /// Sleeps for `time` at most, or until woken or stopped.
    void sleep(std::chrono::milliseconds time);

private:
    Waiting& waiting_;
    std::list<Entry>::iterator entry_;
};

/// What a waiter polls for.
struct Glance {
    std::uint64_t seq = 0;
    bool my_turn = false;
    std::uint64_t before_me = 0;  ///< Up to a few.

    [[nodiscard]] bool operator==(const Glance&) const = default;
};
[[nodiscard]] Sql glance_query(const Watch& watch, const Clock& clock);
[[nodiscard]] Glance glance_in(Answer& answer, bool with_ticket);

/// How long to sleep between two looks: short at first and whenever something happens, because then more is
/// about to; long for those far back in a queue. Never twice the same, so that waiters do not look in step.
class PollRhythm {
public:
    [[nodiscard]] std::chrono::milliseconds next(const Glance& glance);

private:
    std::optional<Glance> last_{};
    std::chrono::milliseconds pause_{};
};

}  // namespace holdfast::stores::mysql
