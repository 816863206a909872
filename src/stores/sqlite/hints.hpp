#pragma once

#include "base/file_watch.hpp"
#include "holdfast/lease.hpp"

#include <string>

namespace holdfast::stores::sqlite {

/// Wakes one waiter and no other: an empty file for each waiting ticket, touched when its turn may have come.
///
/// Hints carry no truth. One that is lost costs the waiter the time until it looks again by itself, so
/// nothing here reports a failure to whoever changes a lock.
class Hints {
public:
    explicit Hints(std::string folder) : folder_(std::move(folder)) {}

    /// Makes the ticket's file and watches it.
    [[nodiscard]] Result<base::FileWatch> watch(const LockId& ticket) const;
    void wake(const LockId& ticket) const;
    /// The ticket is gone, and its file goes with it.
    void forget(const LockId& ticket) const;

private:
    [[nodiscard]] std::string path_of(const LockId& ticket) const { return folder_ + "/" + ticket.text(); }

    std::string folder_;
};

}  // namespace holdfast::stores::sqlite
