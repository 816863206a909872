#include "support/daemon.hpp"

#include "client/policy.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// A lease has what its request asks for, and is stale when the request says so.
Result<client::Terms> as_wished(const LockName& name, const client::Wish& wish) {
    auto terms = client::terms_for(name, {}, wish);
    if (terms) terms->stale_after = 0ms;
    return terms;
}

}  // namespace

DaemonInside::DaemonInside(Store& store, const Clock& clock, server::ServeOptions options) {
    options.listen = "127.0.0.1:0";
    options.port_file = (folder_.path() / "port").string();
    options.terms = as_wished;
    options.sweep_every = options.keep = {};
    options.stop_grace = 1s;
    std::atomic<bool> has_ended = false;
    std::string why;
    thread_ = std::jthread([&, options](const std::stop_token& stop) mutable {
        options.stop = stop;
        const auto served = server::serve(store, clock, options);
        if (served) return;
        why = served.error().message;
        has_ended = true;
    });
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!(std::ifstream(options.port_file) >> port_)) {
        if (has_ended) throw std::runtime_error("no daemon: " + why);
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the daemon does not listen");
        std::this_thread::sleep_for(1ms);
    }
}

DaemonInside::~DaemonInside() = default;

}  // namespace holdfast::tests
