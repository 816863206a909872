#include "stores/module.hpp"

#include "stores/postgres/postgres_store.hpp"

HOLDFAST_STORE_MODULE(postgres, holdfast::stores::open_postgres_store, holdfast::stores::postgres_schema)
