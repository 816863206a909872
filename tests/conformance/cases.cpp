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
        {.name = "mysql",
         .start = start_mysql,
         .shared = true,
         .survives_reopen = true,
         .corruptible = true,
         .withstands_clock_steps = false,
         .histories = 40},
    };
}

void PrintTo(const StoreCase& store_case, std::ostream* out) { *out << store_case.name; }

}  // namespace holdfast::tests
