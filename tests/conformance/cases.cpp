#include "conformance/cases.hpp"

namespace holdfast::tests {

std::vector<StoreCase> store_cases() {
    return {
        {.name = "memory", .start = start_memory},
        {.name = "file", .start = start_file, .withstands_clock_steps = true},
        {.name = "sqlite", .start = start_sqlite, .withstands_clock_steps = true},
        {.name = "postgres", .start = start_postgres, .histories = 40},
        {.name = "mysql", .start = start_mysql, .histories = 40},
        {.name = "redis", .start = start_redis, .histories = 60},
        {.name = "etcd", .start = start_etcd, .histories = 40},
        {.name = "http_sqlite",
         .start = start_http_sqlite,
         .withstands_clock_steps = true,
         .is_daemon = true,
         .histories = 60},
        {.name = "http_postgres", .start = start_http_postgres, .is_daemon = true, .histories = 10},
        {.name = "http_redis", .start = start_http_redis, .is_daemon = true, .histories = 10},
    };
}

void PrintTo(const StoreCase& store_case, std::ostream* out) { *out << store_case.name; }

}  // namespace holdfast::tests
