// One client of a torture run: works at random until SIGTERM, takes every lock once more, and ends.
// usage: torture_client URL PROCESS FOLDER TTL_MS SEED on|off WORKLOAD...
#include "holdfast/open.hpp"
#include "torture/client/supervised.hpp"
#include "torture/client/workloads.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

volatile std::sig_atomic_t stopping = 0;

/// The store, as soon as it can be opened: a client may start while its server is down.
std::unique_ptr<holdfast::Store> open_patiently(const std::string& url) {
    const auto deadline = holdfast::Deadline::in(holdfast::host_clock(), std::chrono::seconds{60});
    auto store = holdfast::open_store(url);
    while (!store && !deadline.passed(holdfast::host_clock())) {
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
        store = holdfast::open_store(url);
    }
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 8) {
        std::fprintf(stderr, "usage: torture_client URL PROCESS FOLDER TTL_MS SEED on|off WORKLOAD...\n");
        return 64;
    }
    std::signal(SIGTERM, [](int) { stopping = 1; });
    // From here on a request to end is understood.
    std::puts("ready");
    std::fflush(stdout);
    try {
        const std::filesystem::path folder = arguments[3];
        const auto ttl = holdfast::Ttl::of(std::chrono::milliseconds{std::stoll(arguments[4])});
        if (!ttl) throw std::invalid_argument(ttl.error().message);
        torture::WorkerSettings settings{.folder = folder, .ttl = *ttl};
        settings.seed = std::stoull(arguments[5]);
        settings.guard = std::string_view(arguments[6]) == "off" ? torture::Guard::off : torture::Guard::on;
        settings.workloads.assign(arguments + 7, arguments + count);

        const holdfast::base::Fd alive = torture::sign_of_life((folder / "alive").string());
        setenv("HOLDFAST_STORE", arguments[1], 1);
        torture::Recorder recorder((folder / "history").string(), arguments[2]);
        const auto store = open_patiently(arguments[1]);
        torture::Worker worker(*store, recorder, settings);
        while (stopping == 0)
            if (!worker.turn()) std::this_thread::sleep_for(std::chrono::milliseconds{50});
        worker.last_turns();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "torture_client %s: %s\n", arguments[2], error.what());
        return 1;
    }
}
