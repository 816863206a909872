#pragma once

#include "harness/clients.hpp"

namespace holdfast::bench {

/// What a program would write that keeps its leases in SQLite by itself: one row, two transactions. With `batch` above
/// one, so many rows are inserted and deleted in one.
[[nodiscard]] std::unique_ptr<Client> sqlite_row(const std::string& file, const std::string& synchronous,
                                                 int batch = 1);

}  // namespace holdfast::bench
