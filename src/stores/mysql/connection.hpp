#pragma once

#include "sql/mysql/connection.hpp"

/// The store's connections are those of `sql/mysql`; `server.hpp` opens them.
namespace holdfast::stores::mysql {

using sql::mysql::Address;
using sql::mysql::Answer;
using sql::mysql::Answers;
using sql::mysql::BoundRows;
using sql::mysql::Comma;
using sql::mysql::Connection;
using sql::mysql::Failure;
using sql::mysql::Row;
using sql::mysql::Sql;
using sql::mysql::TextRows;
using sql::mysql::Tls;

}  // namespace holdfast::stores::mysql
