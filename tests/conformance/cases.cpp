#include "conformance/cases.hpp"

namespace holdfast::tests {

namespace {

/// Its clock is the server's, which the host's operators do not touch, so a step of it is not this suite's subject.
StoreCase in_server(std::string name, Result<std::unique_ptr<StoreHarness>> (*start)(), int histories,
                    bool vouches_for_sights = true) {
    return {.name = std::move(name),
            .start = start,
            .shared = true,
            .survives_reopen = true,
            .corruptible = true,
            .withstands_clock_steps = false,
            .vouches_for_sights = vouches_for_sights,
            .histories = histories};
}

}  // namespace

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
        in_server("postgres", start_postgres, 40),
        // InnoDB shows a change before it is on disk.
        in_server("mysql", start_mysql, 40, false),
        in_server("redis", start_redis, 60),
        in_server("etcd", start_etcd, 40),
    };
}

void PrintTo(const StoreCase& store_case, std::ostream* out) { *out << store_case.name; }

}  // namespace holdfast::tests
