// Tests a program that holds a lock: what it does when the lease is lost, without waiting for that. Quoted in
// docs/reference/library.md, built and run by tests/docs.

#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>

namespace {

using namespace std::chrono_literals;

/// The program under test: works until it is told to stop, and returns why it did.
holdfast::Error work_until_lost(holdfast::Hold& hold) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, hold.lost(), [] { return false; });
    return *hold.loss();
}

}  // namespace

int main() {
    holdfast::ManualClock clock;
    const auto store = holdfast::open_store("memory:", clock);
    if (!store) return 1;

    holdfast::HoldOptions options;
    options.ttl = *holdfast::Ttl::of(30s);
    options.renew = false;
    options.observer = [](const holdfast::HoldEvent& event) {
        std::cout << holdfast::name_of(event.kind) << ' ' << event.name.text();
        if (event.cause) std::cout << ": " << event.cause->message;
        std::cout << '\n';
    };
    auto held = holdfast::hold(**store, "backup/db", options);  // Has the clock of its store.
    if (!held) return 1;

    clock.advance(31s);
    return work_until_lost(*held).code == holdfast::Errc::lock_expired ? 0 : 1;
}
