#pragma once

#include "stores/common/in_doubt.hpp"

#include <expected>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::stores {

/// Why an attempt to apply a batch gave no replies.
struct AttemptError {
    enum class Kind {
        final,            ///< Tell the caller.
        conflict,         ///< Another client was in the way. Nothing was changed; the same may succeed after a pause.
        prepared,         ///< Something that was missing has been created. Nothing else was changed; try at once.
        connection_lost,  ///< Nothing was changed. Try once more on another connection.
        in_doubt,         ///< The batch may have been committed: `doubt` says what to look for.
        locks_busy,       ///< Others have locked rows of the batch, and it was not to wait. Nothing was changed.
        one_spoils_all,   ///< One lock of the batch cannot be changed. Nothing was changed; the others can be alone.
    };
    Kind kind = Kind::final;
    Error error;
    std::vector<LockName> busy_locks{};      ///< With `locks_busy`: which ones. Empty if that is not known.
    std::shared_ptr<const InDoubt> doubt{};  ///< Shared, since the error is copied and replies are many.
};

using AttemptResult = std::expected<std::vector<Reply>, AttemptError>;

/// What to do about rows that others have locked.
enum class Busy { wait, report };

/// What the next attempt has to take into account.
struct AttemptTerms {
    std::shared_ptr<const InDoubt> doubt{};  ///< An earlier attempt may have been committed.
    bool wants_fresh_connection = false;     ///< Those that were used before have probably broken as well.
};

/// Repeats `attempt` while that can help and `is_over` is false, with a random pause after a conflict.
///
/// Once the batch may have been committed, the result is its outcome or `outcome_unknown`, whatever happens later. A
/// grant is sure then: what is still on its way fits only what was there before. A refusal is not, since it changed
/// nothing.
[[nodiscard]] AttemptResult apply_with_retries(const std::function<AttemptResult(const AttemptTerms&)>& attempt,
                                               const std::function<bool()>& is_over);

}  // namespace holdfast::stores
