#pragma once

#include "base/fd.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <string>
#include <vector>

namespace holdfast::base {

/// A folder with a named pipe, the bell, for each lock_id whose owner may be asleep: the owner of a ticket, or of a
/// lease.
///
/// A ring is only a hint. After a lost ring the waiter looks a little later by itself, so no failure here is reported
/// to the client that changes a lock. Rings without a listener are lost.
class Doorbells {
public:
    explicit Doorbells(std::string folder) : folder_(std::move(folder)) {}

    void ring(const LockId& called) const;
    /// The ticket or the lease is gone, and its bell goes with it.
    void take_down(const LockId& called) const;

    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::string path_of(const LockId& called) const { return folder_ + "/" + called.text(); }

private:
    std::string folder_;
};

/// Receives all rings for one Store object: a pipe with a name for each lock_id of its waiters and holders, so that
/// many of them need one descriptor. A ring contains its lock_id.
///
/// For one thread at a time. Ends without removing the names: they belong to the tickets and leases.
class Doorbell {
public:
    /// Makes the bell of `called`, and the folder, where they are missing. Subscribe first, then read, then sleep: a
    /// change in between is not missed.
    [[nodiscard]] Result<void> hang(const Doorbells& bells, const LockId& called);
    /// The same, but an error if another process has made that bell: several processes can have one lease, and each
    /// ring reaches only one of the processes that share a pipe.
    [[nodiscard]] Result<void> hang_own(const Doorbells& bells, const LockId& called);

    struct Rings {
        /// Some rings contained no ticket, as those of older builds, or may have been lost.
        bool for_all = false;
        std::vector<LockId> called{};
    };
    /// Never blocks.
    [[nodiscard]] Rings take_rings();

    /// Can be read when there are rings. Nearly always one: where a name cannot be added to a pipe, a new one is made.
    [[nodiscard]] std::vector<int> descriptors() const;

private:
    enum class IfThere { share, fail };

    [[nodiscard]] Result<void> hang(const Doorbells& bells, const LockId& called, IfThere if_there);
    [[nodiscard]] bool add_name(const std::string& path) const;
    [[nodiscard]] bool has_name(const std::string& path) const;
    [[nodiscard]] Result<void> add_pipe(const std::string& path, IfThere if_there);

    std::vector<Fd> pipes_{};
};

}  // namespace holdfast::base
