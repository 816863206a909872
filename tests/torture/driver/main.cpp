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
#include <array>
#include <cerrno>
#include <cstdio>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

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

/// As long as it takes: twenty minutes are half a million calls, and the machine may be busy.
int judge(const fs::path& history) {
    std::string checker = program("torture_checker");
    std::string argument = history.string();
    const std::array<char*, 3> arguments{checker.data(), argument.data(), nullptr};
    pid_t pid = -1;
    if (const int error = posix_spawn(&pid, checker.c_str(), nullptr, nullptr, arguments.data(), environ); error != 0)
        throw std::system_error(error, std::generic_category(), "run " + checker);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
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
    const fs::path kept = options.keep
                              ? fs::path(*options.keep)
                              : fs::temp_directory_path() / fmt::format("torture-{}-{}.history", kind, options.seed);
    const auto keep = [&] {
        fs::copy_file(history, kept, fs::copy_options::overwrite_existing);
        fmt::print("the history is in {}\n", kept.string());
    };
    // Before it is judged: what was wanted is not lost with a checker that is ended.
    if (options.keep) keep();
    const int status = judge(history);
    if (status != 0 && !options.keep) keep();
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
