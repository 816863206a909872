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
        locks_busy,  ///< Other clients have locked rows of the batch, and it was told not to wait. Nothing was changed.
        one_spoils_all,  ///< One lock of the batch cannot be changed, so none was. Without it the others can be.
    };
    Kind kind = Kind::final;
    Error error;
    std::vector<LockName> busy_locks{};      ///< With `locks_busy`: which ones. Empty if that is not known.
    std::shared_ptr<const InDoubt> doubt{};  ///< Shared, since the error is copied and replies are many.
};

using AttemptResult = std::expected<std::vector<Reply>, AttemptError>;

/// The result for a caller of the store.
[[nodiscard]] Result<std::vector<Reply>> to_result(AttemptResult result);

/// What to do about rows that others have locked.
enum class Busy { wait, report };

/// What the next attempt has to take into account.
struct AttemptTerms {
    std::shared_ptr<const InDoubt> doubt{};  ///< An earlier attempt may have been committed.
    bool wants_fresh_connection = false;     ///< The idle connections are probably broken, too.
};

/// Repeats `attempt` while that can help and `is_over` is false, with a random pause after a conflict.
///
/// Once the batch may have been committed, the result is its outcome or `outcome_unknown`, whatever happens later. A
/// grant can be relied on even then: a copy of the batch that is still on its way fits only the state before it. A
/// refusal cannot, since it changed nothing.
[[nodiscard]] AttemptResult apply_with_retries(const std::function<AttemptResult(const AttemptTerms&)>& attempt,
                                               const std::function<bool()>& is_over);

}  // namespace holdfast::stores
