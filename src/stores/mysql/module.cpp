#include "stores/module.hpp"

#include "stores/mysql/mysql_store.hpp"

HOLDFAST_STORE_MODULE(mysql, holdfast::stores::open_mysql_store, holdfast::stores::mysql_schema)
