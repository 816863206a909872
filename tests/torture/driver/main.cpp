// Real clients on a real store, faults chosen by a seed, and a judge in the end. See docs/reliability.md.
// Ends with what the checker says (0, 1 or 3); 2: the run itself went wrong; 64: it was called wrongly; 77: this build
// has no such store.
#include "holdfast/open.hpp"
#include "support/temp_folder.hpp"
#include "torture/client/supervised.hpp"
#include "torture/client/workloads.hpp"
#include "torture/driver/dump.hpp"
#include "torture/driver/nemesis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

namespace torture {
namespace {

namespace fs = std::filesystem;

/// Longer than the patience of a client's last turn.
constexpr std::chrono::seconds patience{150};

/// What the clients and the store of this run can suffer.
std::vector<std::string> possible(const Options& options, const Stage& stage) {
    std::vector<std::string> faults{"kill", "stop"};
    if (std::ranges::find(options.workloads, "run") != options.workloads.end())
        faults.insert(faults.end(), {"supervisor_kill", "supervisor_stop"});
    std::ranges::move(stage.faults(), std::back_inserter(faults));
    return faults;
}

void complete(Options& options, const Stage& stage) {
    options.margin = stage.margin();
    const std::vector<std::string> workloads = all_workloads();
    if (options.workloads.empty()) options.workloads = workloads;
    const std::vector<std::string> faults = possible(options, stage);
    if (options.faults.empty()) options.faults = faults;
    for (const std::string& fault : options.faults)
        if (std::ranges::find(faults, fault) == faults.end())
            throw std::invalid_argument(
                fmt::format("{} can suffer {}, not {}", options.store, fmt::join(faults, ", "), fault));
    for (const std::string& workload : options.workloads)
        if (std::ranges::find(workloads, workload) == workloads.end())
            throw std::invalid_argument(fmt::format("the workloads are {}", fmt::join(workloads, ", ")));
}

std::string first_line(const Options& options) {
    std::vector<std::string> required = options.faults;
    const bool guarded = std::ranges::find(options.workloads, "register") != options.workloads.end();
    const bool stops = std::ranges::find(options.faults, "stop") != options.faults.end();
    if (guarded && stops) required.emplace_back("stale");
    for (std::string& fault : required) fault = '"' + fault + '"';
    return fmt::format(R"({{"e":"run","seed":{},"store":"{}","require":[{}],"control":{}}})", options.seed,
                       options.store, fmt::join(required, ","), !options.guard);
}

int judge(const fs::path& history) {
    auto checker = holdfast::tests::Process::run({program("torture_checker"), history.string()});
    fmt::print("{}", checker.read_all());
    return checker.wait().status.value_or(2);
}

int run(Options options) {
    const std::string kind =
        options.store == "etcd3" ? "etcd" : options.store.substr(0, options.store.find_first_of(":_"));
    const auto schemes = holdfast::known_schemes();
    if (std::ranges::find(schemes, kind) == schemes.end()) {
        fmt::print(stderr, "torture: this build has no store for {}\n", kind);
        return 77;
    }
    const bool fills = options.faults.empty() || std::ranges::find(options.faults, "disk_full") != options.faults.end();
    const auto stage = set_up(options.store, fills ? Place::small_disk : Place::host);
    complete(options, *stage);
    fmt::print(
        "torture: --store {} --faults {} --workloads {} --{} --clients {} --ttl-ms {} --guard {} --seed {}\n",
        options.store, fmt::join(options.faults, ","), fmt::join(options.workloads, ","),
        options.rounds ? fmt::format("rounds {}", *options.rounds) : fmt::format("seconds {}", options.time.count()),
        options.clients, options.ttl.count(), options.guard ? "on" : "off", options.seed);

    const holdfast::tests::TempFolder folder;
    const fs::path history = folder.path() / "history";
    Recorder recorder(history.string(), "nemesis");
    recorder.line(first_line(options));
    {
        auto store = holdfast::open_store(stage->inner_url());
        if (!store) throw std::runtime_error(store.error().message);
        Crew crew(options, stage->url(), folder.path());
        Nemesis(options, *stage, crew, **store, recorder).rage();
        if (!crew.dismiss(patience)) fmt::print("somebody did not get every lock once more\n");
    }
    // Opened anew: what counts is what is stored.
    const auto store = holdfast::open_store(stage->inner_url());
    if (!store) throw std::runtime_error(store.error().message);
    dump_audit(**store, recorder);
    dump_journals(folder.path(), recorder);
    const int status = judge(history);
    const fs::path kept = options.keep
                              ? fs::path(*options.keep)
                              : fs::temp_directory_path() / fmt::format("torture-{}-{}.history", kind, options.seed);
    if (status != 0 || options.keep) {
        fs::copy_file(history, kept, fs::copy_options::overwrite_existing);
        fmt::print("the history is in {}\n", kept.string());
    }
    return status;
}

}  // namespace
}  // namespace torture

int main(int count, char** arguments) {
    // In order with what the checker and the clients say.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        return torture::run(torture::parse_options(count, arguments));
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "torture: {}\n{}", error.what(), torture::usage());
        return 64;
    } catch (const std::exception& error) {
        fmt::print(stderr, "torture: {}\n", error.what());
        return 2;
    }
}
