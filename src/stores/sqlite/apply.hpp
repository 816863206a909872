#pragma once

#include "holdfast/request.hpp"
#include "stores/sqlite/checked_store.hpp"

#include <span>
#include <vector>

namespace holdfast::stores::sqlite {

/// The effects of a batch, beside its replies.
struct Effects {
    bool changed = false;
    bool changed_lock = false;     ///< And not only places in queues.
    bool made_lock = false;        ///< That had no record.
    std::vector<LockId> gone;      ///< Tickets that were removed.
    std::vector<LockId> ended;     ///< Leases that are over.
    std::vector<LockName> opened;  ///< Locks that somebody in their queue may now take.
    std::vector<LockId> next;      ///< The first in those queues.
};

/// Decides and saves `requests` in one transaction, which is given up if it changes nothing. Only inside the gate.
[[nodiscard]] Result<std::vector<Reply>> run_steps(CheckedStore& store, Bonds& bonds, std::span<const Request> requests,
                                                   const Clock& clock, Effects& effects);

}  // namespace holdfast::stores::sqlite
