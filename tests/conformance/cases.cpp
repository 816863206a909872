#include "conformance/cases.hpp"

namespace holdfast::tests {

std::vector<StoreCase> store_cases() {
    return {
        {.name = "memory",
         .start = start_memory,
         .shared = false,
         .survives_reopen = false,
         .corruptible = false,
         .withstands_clock_steps = false},
        {.name = "etcd",
         .start = start_etcd,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = false,
         .histories = 40},
        {.name = "file",
         .start = start_file,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = true},
        {.name = "sqlite",
         .start = start_sqlite,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = true},
        {.name = "postgres",
         .start = start_postgres,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = false,
         .histories = 40},
        {.name = "redis",
         .start = start_redis,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = false,
         .histories = 60},
    };
}

void PrintTo(const StoreCase& store_case, std::ostream* out) { *out << store_case.name; }

}  // namespace holdfast::tests
