#include "sql/module.hpp"

#include "sql/mysql/session.hpp"

HOLDFAST_SQL_MODULE(mysql, holdfast::sql::mysql::open_session)
