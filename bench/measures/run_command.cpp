#include "harness/programs.hpp"
#include "measures/measures.hpp"

#include <array>

namespace holdfast::bench {

std::vector<Line> measure_run(const Site& site) {
    const std::string folder = site.folder.string();
    const auto run_on = [&](const std::string& name, const std::string& store) {
        return Contender{
            name, [&site, store] { return time_of({site.holdfast, "run", "--store", store, "x", "--", "true"}, 40); }};
    };
    const std::array contenders{
        Contender{"flock f true", [&] { return time_of({"flock", folder + "/flock", "true"}, 40); }},
        Contender{"true", [] { return time_of({"true"}, 40); }},
        run_on("sqlite", "sqlite:" + folder + "/run.db"),
        run_on("sqlite sync=off", "sqlite:" + folder + "/run-off.db?sync=off"),
        run_on("file", "file:" + folder + "/run-store"),
        run_on("file sync=off", "file:" + folder + "/run-store-off?sync=off"),
    };
    const auto series = alternate("P1", contenders, site.rounds);
    const auto line = [&](std::string measure, std::size_t peer, std::size_t ours, std::optional<Goal> goal) {
        return Line{"P1", std::move(measure), "ms", contenders[peer].name, series[peer], series[ours], goal};
    };
    return {line("run x -- true, SQLite, durable", 0, 2, Goal{2.0}),
            line("run x -- true, SQLite, sync=off", 0, 3, Goal{1.3}),
            line("run x -- true, file, durable", 0, 4, std::nullopt),
            line("run x -- true, file, sync=off", 0, 5, std::nullopt),
            line("run x -- true, SQLite, durable", 1, 2, std::nullopt)};
}

}  // namespace holdfast::bench
