#pragma once

#include "stores/postgres/keeper.hpp"
#include "stores/postgres/view.hpp"

#include <span>
#include <vector>

namespace holdfast::stores::postgres {

/// A batch that may have been committed, or not. All of it or nothing, so one of its locks shows which.
struct Doubt {
    LockName name;
    std::uint64_t seq = 0;  ///< Of the last event that the lock would have,
    Digest chain{};         ///< and its hash.
    std::vector<Reply> replies{};
    Error error;
};

/// Why a batch was not applied, and what can be done about it.
struct Obstacle {
    enum class Remedy {
        none,       ///< Tell the caller.
        repeat,     ///< The server gave way to another transaction: the same again.
        reconnect,  ///< The session ended before anything was committed.
        look,       ///< The session ended, and nobody knows whether it was committed: `doubt` says what to look for.
        create,     ///< There is no store yet.
        wait,       ///< Somebody else has locked rows of the batch, and nobody was to wait for them.
    };
    Remedy remedy = Remedy::none;
    Error error;
    std::vector<LockName> busy{};  ///< Whose rows they are, if that is known.
    std::string constraint{};      ///< That was violated, if one was.
    std::shared_ptr<const Doubt> doubt{};
};

/// What to do about rows that somebody else has locked.
enum class Busy { wait, report };

struct Applied {
    std::vector<Reply> replies;
    StoreId store_id;
};

struct Knowledge;

/// What a Store object is made of, as far as a transaction needs it.
struct Context {
    const Settings& settings;
    const Statements& statements;
    const Clock& clock;
    Keeper* keeper = nullptr;           ///< Only with session=on.
    Knowledge* knowledge = nullptr;     ///< Only without.
    std::optional<StoreId> store_id{};  ///< That it has seen.
    Busy busy = Busy::wait;
    std::shared_ptr<const Doubt> doubt{};  ///< Whether the same batch was committed before.
};

/// One batch in one transaction: one round trip if everything is as expected; otherwise two, or one and a farewell if
/// nothing changes.
[[nodiscard]] std::expected<Applied, Obstacle> apply_once(Connection& connection, const Context& context,
                                                          std::span<const Request> requests, const Budget& budget);

}  // namespace holdfast::stores::postgres
