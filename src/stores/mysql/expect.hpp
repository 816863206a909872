#pragma once

#include "stores/mysql/codec.hpp"

/// Statements, each with its `;`, that end in an error (`Failure::out_of_range`) if something is not as expected. That
/// is the only thing that keeps the server from running those behind them in the same packet.
namespace holdfast::stores::mysql {

/// The rows of those locks that have been used are exactly these. They are locked, in the order of their key, and
/// nobody is waited for. Nothing if there are none.
[[nodiscard]] Sql expect_locks(std::span<const KnownLock> locks);

/// Everything else is as expected; nobody waits for the locks that were written, and the fresh ones have no history
/// beside that. To be run behind what locks the rows.
[[nodiscard]] Sql expect_rest(const Writing& writing, const Expected& expected);

}  // namespace holdfast::stores::mysql
