#include "sql/module.hpp"

#include "sql/postgres/session.hpp"

HOLDFAST_SQL_MODULE(holdfast::sql::postgres::open_session)
