#pragma once

#include "holdfast/store.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holdfast::bench {

/// A client that takes and releases locks. Used by one thread.
class Client {
public:
    Client() = default;
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    virtual ~Client() = default;

    /// Takes one lock or several that nobody had before, and gives them back. Says how many.
    virtual int work() = 0;
};

using Clients = std::vector<std::unique_ptr<Client>>;

/// How many locks they take and give back in a second, all at once, each on a thread of its own.
[[nodiscard]] double pairs_per_second(const Clients& clients, std::chrono::milliseconds time);

/// Clients of one store of the library. Each has `batch` locks at a time, which it takes in one call and gives back in
/// another.
[[nodiscard]] Clients library_clients(Store& store, int count, int batch = 1);

/// Opens the store, or ends the benchmark.
[[nodiscard]] std::unique_ptr<Store> opened(const std::string& url);

}  // namespace holdfast::bench
