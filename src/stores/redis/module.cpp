#include "stores/module.hpp"

#include "stores/redis/redis_store.hpp"

HOLDFAST_STORE_MODULE(redis, holdfast::stores::open_redis_store, holdfast::stores::redis_schema)
