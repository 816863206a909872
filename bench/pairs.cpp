// pairs URL COUNT [THREADS]: acquires and releases COUNT locks on each thread. For profilers; measures nothing itself.

#include "harness/clients.hpp"

#include <fmt/format.h>

#include <string>
#include <thread>

int main(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: pairs URL COUNT [THREADS]\n");
        return 64;
    }
    const int count = std::stoi(argv[2]);
    const auto store = holdfast::bench::opened(argv[1]);
    const auto clients = holdfast::bench::library_clients(*store, argc > 3 ? std::stoi(argv[3]) : 1);
    std::vector<std::jthread> threads;
    for (const auto& client : clients)
        threads.emplace_back([&] {
            for (int i = 0; i < count; ++i) client->work();
        });
    return 0;
}
