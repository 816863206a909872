#pragma once

#include "holdfast/store.hpp"
#include "values/sha256.hpp"

#include <vector>

namespace holdfast::stores {

/// A batch that may have been committed: all of it or nothing, so one of its locks shows which.
struct InDoubt {
    LockName name;
    std::uint64_t seq = 0;         ///< Of the last event that the batch gives to this lock,
    Digest chain{};                ///< and its hash.
    std::vector<Reply> replies{};  ///< The answer, if the batch was committed.
    Error error;                   ///< The answer, if that cannot be found out any more.

    enum class Verdict { committed, not_committed, unknowable };
    /// What the lock's last event shows, read while its row is locked: then the batch cannot arrive later.
    [[nodiscard]] Verdict judge(std::uint64_t found_seq, const Digest& found_chain) const {
        if (found_seq < seq) return Verdict::not_committed;
        return found_seq == seq && found_chain == chain ? Verdict::committed : Verdict::unknowable;
    }
};

}  // namespace holdfast::stores
