#include "sql/module.hpp"

#include "sql/mysql/session.hpp"

HOLDFAST_SQL_MODULE(holdfast::sql::mysql::open_session)
