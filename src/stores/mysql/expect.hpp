#pragma once

#include "stores/batch/server_clock.hpp"
#include "stores/mysql/lock_rows.hpp"
#include "stores/mysql/memory.hpp"
#include "stores/mysql/schema.hpp"

/// Statements, each with its `;`, that end in an error (`Failure::out_of_range`) if something is not as expected. That
/// is the only thing that keeps the server from running those behind them in the same packet.
namespace holdfast::stores::mysql {

/// The rows of those locks that have been used are exactly these. They are locked, in the order of their key, and
/// nobody is waited for. Nothing if there are none.
[[nodiscard]] Sql expect_locks(std::span<const Memory::Known> locks);

/// The store is this one, its server may be written to, and the time is within `window`. To be run behind what locks
/// the rows.
///
/// And of what was written as text, which asks for nothing itself: nobody waits for those locks, and the fresh ones
/// have no history beside that.
[[nodiscard]] Sql expect_store(const StoreId& store_id, const Window& window, const Clock& clock,
                               const Writing* as_text);

}  // namespace holdfast::stores::mysql
