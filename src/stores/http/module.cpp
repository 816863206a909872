#include "stores/module.hpp"

#include "stores/http/http_store.hpp"

HOLDFAST_STORE_MODULE(http, holdfast::stores::open_http_store, holdfast::stores::http_schema)
