#include "sql/module.hpp"

#include "sql/postgres/session.hpp"

HOLDFAST_SQL_MODULE(postgres, holdfast::sql::postgres::open_session)
