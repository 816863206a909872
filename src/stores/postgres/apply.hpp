#pragma once

#include "stores/common/attempt.hpp"
#include "stores/postgres/read.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/session.hpp"

#include <span>
#include <vector>

namespace holdfast::stores::postgres {

struct Applied {
    std::vector<Reply> replies;
    Identity store;
};

struct Optimistic;

/// The parts of a Store object that a transaction uses.
struct Context {
    const Settings& settings;
    const Statements& statements;
    const Clock& clock;
    Keeper* keeper = nullptr;          ///< Only with session=on.
    Optimistic* optimistic = nullptr;  ///< Only without.
    std::optional<Identity> store{};   ///< The store as it was seen last.
    Busy busy = Busy::wait;
    std::shared_ptr<const InDoubt> doubt{};  ///< Of an earlier attempt at the same batch.
};

/// Why one attempt was not applied.
struct ApplyError : AttemptError {
    bool no_store = false;     ///< There is no store yet.
    bool old_format = false;   ///< The store is to be upgraded first.
    std::string constraint{};  ///< The constraint that was violated, if any.
};

/// One batch in one transaction: one round trip if it could be predicted; otherwise two, or one and a ROLLBACK that is
/// not waited for if nothing changes.
[[nodiscard]] std::expected<Applied, ApplyError> apply_once(Connection& connection, const Context& context,
                                                            std::span<const Request> requests,
                                                            const base::CallBudget& budget);

}  // namespace holdfast::stores::postgres
