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
    };
}

void PrintTo(const StoreCase& store_case, std::ostream* out) { *out << store_case.name; }

}  // namespace holdfast::tests
