#pragma once

#include "holdfast/store.hpp"
#include "stores/etcd/session.hpp"

/// Looking without changing anything.
namespace holdfast::stores::etcd {

[[nodiscard]] Result<LockStatus> inspect(Session& session, const LockName& name, CallBudget& budget);
/// As people and holders see it.
[[nodiscard]] LockStatus status_at(const LockView& lock, const Moment& moment);
[[nodiscard]] Result<std::vector<LockStatus>> list(Session& session, const ListQuery& query, CallBudget& budget);
[[nodiscard]] Result<std::vector<AuditEvent>> history(Session& session, const HistoryQuery& query, CallBudget& budget);

/// A waiter looks again after this long, whatever its watch says or does not say.
constexpr std::chrono::milliseconds look_again_after{10'000};

/// What a waiter needs to know.
struct Outlook {
    std::uint64_t seq = 0;
    bool may_go_on = false;            ///< Its turn may have come, or it has lost its place.
    std::string watch_next{};          ///< The key whose change brings it nearer.
    bool only_deletes = false;         ///< Of that key, only its removal does.
    Revision revision = 0;             ///< When that was so.
    std::optional<KeyValue> behind{};  ///< Of who is the first in line: the place of the second.
    std::uint64_t waiters = 0;         ///< And how many they are.
    /// Then its turn may have come by the mere passing of time: nobody says when a lease or a ticket has run out.
    std::chrono::milliseconds look_again = look_again_after;
};
[[nodiscard]] Result<Outlook> look_out(Session& session, const Watch& watch, CallBudget& budget);

/// The same for who has just taken the place `ticket`, from what its transaction read. Absent if that was not enough.
struct TakenPlace {
    std::optional<KeyValue> meta{};
    std::optional<KeyValue> record{};
    Found queue{};  ///< Its beginning, with the place.
    Revision revision = 0;
    Moment moment{};
};
[[nodiscard]] std::optional<Outlook> outlook_from(Session& session, const LockName& name, const LockId& waiter,
                                                  TakenPlace taken);

/// Whether somebody who waits for the lock could take it, going by its record as it is stored now.
[[nodiscard]] bool is_its_turn(const LockId& waiter, const std::string& stored_record, const LockName& name);

}  // namespace holdfast::stores::etcd
