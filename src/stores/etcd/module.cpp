#include "stores/module.hpp"

#include "stores/etcd/etcd_store.hpp"

HOLDFAST_STORE_MODULE(etcd, holdfast::stores::open_etcd_store, holdfast::stores::etcd_schema)
