#pragma once

#include "kernel/step.hpp"
#include "stores/file/lock_folder.hpp"
#include "stores/file/ticket_queue.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace holdfast::stores::file {

/// A waiter whose turn may have come.
struct Call {
    base::Doorbells bells;
    LockId ticket{};
};

/// One critical section: some locks, guarded all at once, and the steps that are decided on them.
///
/// Guards are taken in the order of folder names, so that two sections never wait for each other.
class Section {
public:
    /// Guards every lock that `requests` read or change. A lock that cannot be guarded or read does not
    /// fail the others: requests that need it are answered with its error.
    Section(const Folder& locks, Bonds& bonds, std::span<const Request> requests, const Clock& clock,
            Deadline deadline);

    /// Decides `request`; its change is durable only after the next `save`. Fails if an earlier change had to be saved
    /// first and could not be.
    [[nodiscard]] Result<Reply> decide(const Request& request);

    /// Makes everything decided so far durable.
    [[nodiscard]] Result<void> save();

    /// The waiters to ring when the section is over: a waiter that was rung sooner would find its lock still guarded.
    [[nodiscard]] std::vector<Call> take_calls() { return std::move(calls_); }

    /// Whether anything was changed on disk, or may have been.
    [[nodiscard]] bool has_written() const { return has_written_; }

private:
    struct Lock {
        explicit Lock(LockName lock_name);
        LockName name;
        std::optional<LockFolder> folder{};  ///< Absent for a lock that was never used, unless a request creates it.
        std::optional<Guard> guard{};
        std::optional<Error> broken{};
        SavedLock saved;        ///< As it is on disk.
        kernel::Record record;  ///< As it will be.
        std::vector<AuditEvent> events{};
        bool changed = false;
        std::optional<LockId> handed_to{};   ///< The waiter that got the lock and has not been told yet.
        std::optional<LockId> lost_lease{};  ///< The lease that was ended and whose holder has not been told yet.
        std::optional<TicketQueue> queue{};  ///< Absent until a step needs it.
    };

    void load(Lock& lock, Deadline deadline);
    [[nodiscard]] Result<kernel::State> state_of(const Request& request, Lock& lock);
    [[nodiscard]] static Result<void> expect_prunable(const Lock& lock, const kernel::Decision& decision);
    [[nodiscard]] Result<void> load_queue(Lock& lock);
    void take_over(Lock& lock, kernel::Decision& decision);
    [[nodiscard]] Result<Reply> repair(const Request& request, Lock& lock);
    [[nodiscard]] Result<void> save(Lock& lock);
    [[nodiscard]] Result<void> save_record(Lock& lock);

    const Folder& locks_;
    Bonds& bonds_;
    const Clock& clock_;
    std::map<std::string, Lock> guarded_{};  ///< By folder name.
    kernel::ClockMark mark_{};
    Instant now_{};
    std::vector<Call> calls_{};
    bool has_written_ = false;
};

/// The most requests from the front of `requests` that one section may serve: it keeps few files open
/// and holds others up for a bounded time.
[[nodiscard]] std::size_t section_size(std::span<const Request> requests);

}  // namespace holdfast::stores::file
