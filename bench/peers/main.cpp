// Measures Holdfast and what people would use instead, in turn, and prints the ratios of docs/performance.md.
//
// peers HOLDFAST STAMP RESULTS   BENCH=P1,P9 selects, BENCH_ROUNDS=7 says how often.

#include "peers/measures.hpp"

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
    Measure{"P2", measure_pairs},
    Measure{"P9", measure_handover},
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
    if (argc != 4) {
        fmt::print(stderr, "usage: peers HOLDFAST STAMP RESULTS\n");
        return 64;
    }
    const std::string wanted = variable("BENCH", "");
    Site site{fs::absolute(argv[1]).string(), fs::absolute(argv[2]).string(), fresh_folder(),
              std::stoi(variable("BENCH_ROUNDS", "7"))};
    std::vector<Line> lines;
    for (const Measure& measure : measures) {
        if (!names(wanted, measure.id)) continue;
        fmt::print(stderr, "measuring {}...\n", measure.id);
        const auto some = measure.run(site);
        lines.insert(lines.end(), some.begin(), some.end());
    }
    fs::remove_all(site.folder);
    fmt::print("{}medians of {} rounds, ± half the distance between the quartiles\n", to_table(lines), site.rounds);
    fs::create_directories(fs::path(argv[3]).parent_path());
    std::ofstream(argv[3]) << to_json(lines);
    return 0;
}
