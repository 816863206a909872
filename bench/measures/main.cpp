// Measures Holdfast and what people would use instead, in turn, and prints the ratios of docs/performance.md.
//
// peers HOLDFAST STAMP PEERS RESULTS
//
// BENCH=P1,P9 selects, BENCH_ROUNDS=7 says how often, BENCH_GROWTH=1000000 how many locks the large store of P10 has,
// BENCH_CSV_MB=100 how large the file of P13 is.
// RESULTS is a JSON file; a plot is written beside it.

#include "harness/plot.hpp"
#include "measures/measures.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace {

using namespace holdfast::bench;
namespace fs = std::filesystem;

struct Measure {
    std::string_view id;
    std::vector<Line> (*run)(const Site& site);
};

constexpr std::array measures{
    Measure{"P1", measure_run},
    Measure{"P2", measure_sqlite_pairs},
    Measure{"P3", measure_daemon_pairs},
    Measure{"P4", measure_daemon_batches},
    Measure{"P5", measure_redis_pairs},
    Measure{"P6", measure_postgres_pairs},
    Measure{"P6", measure_daemon_on_postgres},
    Measure{"P7", measure_mysql_pairs},
    Measure{"P7", measure_daemon_on_mysql},
    Measure{"P8", measure_etcd_pairs},
    Measure{"P9", measure_handover},
    Measure{"P10", measure_growth},
    Measure{"P11", measure_daemon_crowd},
    Measure{"P12", measure_snapshots},
    Measure{"P13", measure_migrations},
    Measure{"P13", measure_data},
    Measure{"P14", measure_crash},
};

std::string variable(const char* name, const std::string& fallback) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? fallback : value;
}

/// Whether `list`, such as `P1,P9`, names `id`. An empty list names all.
bool names(const std::string& list, std::string_view id) {
    return list.empty() || ("," + list + ",").find(fmt::format(",{},", id)) != std::string::npos;
}

/// On the disk where it is made: a measure of durability in memory would be none.
fs::path fresh_folder() {
    std::string name = (fs::current_path() / "bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    return name;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        fmt::print(stderr, "usage: peers HOLDFAST STAMP PEERS RESULTS\n");
        return 64;
    }
    const std::string wanted = variable("BENCH", "");
    const Site site{.holdfast = fs::absolute(argv[1]).string(),
                    .stamp = fs::absolute(argv[2]).string(),
                    .peers = fs::absolute(argv[3]),
                    .folder = fresh_folder(),
                    .rounds = std::stoi(variable("BENCH_ROUNDS", "7")),
                    .growth = std::stoi(variable("BENCH_GROWTH", "50000")),
                    .csv_megabytes = std::stoi(variable("BENCH_CSV_MB", "100"))};
    std::vector<Line> lines;
    for (const Measure& measure : measures) {
        if (!names(wanted, measure.id)) continue;
        const auto some = measure.run(site);
        lines.insert(lines.end(), some.begin(), some.end());
    }
    fs::remove_all(site.folder);
    fmt::print("{}medians of {} rounds, ± half the distance between the quartiles\n", to_table(lines), site.rounds);
    const fs::path results = argv[4];
    fs::create_directories(results.parent_path());
    std::ofstream(results) << to_json(lines);
    std::ofstream(fs::path(results).replace_extension("svg")) << to_svg(lines);
    return 0;
}
