#pragma once

#include "sql/sqlite/connection.hpp"

/// The store's connections are those of `sql/sqlite`, opened through the store's own layer over the files
/// (log_file.hpp).
namespace holdfast::stores::sqlite {

using sql::sqlite::Database;
using sql::sqlite::Query;
using sql::sqlite::sqlite_error;
using sql::sqlite::Transaction;

}  // namespace holdfast::stores::sqlite
