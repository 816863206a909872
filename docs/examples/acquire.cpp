// Takes a lock, works while its lease lives, and gives it back. Quoted in docs/reference/library.md, built
// and run by tests/docs. Uses a store in memory unless an argument names another: ./acquire sqlite:locks.db

#include "holdfast/open.hpp"

#include <chrono>
#include <iostream>

namespace {

using namespace std::chrono_literals;

/// Stands for the dangerous thing. Gives the token to whatever it writes to.
void work(holdfast::FencingToken token) { std::cout << "working with token " << token.value << '\n'; }

int failed(const holdfast::Error& error) {
    const holdfast::ErrorRow& row = holdfast::row_of(error.code);
    std::cerr << row.name << ": " << error.message << '\n';
    return row.exit_status;
}

int run(std::string_view url) {
    const holdfast::Clock& clock = holdfast::host_clock();
    auto store = holdfast::open_store(url, clock);
    if (!store) return failed(store.error());
    const auto name = holdfast::LockName::parse("migrate/prod");
    if (!name) return failed(name.error());
    const auto ttl = holdfast::Ttl::of(30s);
    if (!ttl) return failed(ttl.error());

    // Chosen before anything is sent: if the answer gets lost, the same request can be repeated.
    const auto as = holdfast::Credentials::random();
    const holdfast::Acquire request{
        .name = *name, .as = as, .holder = holdfast::Holder::this_process(), .operation = "migrate up", .ttl = *ttl};

    // Our own deadline is counted from before the request leaves, so it passes before the store's does.
    const auto trusted = holdfast::Deadline::in(clock, ttl->time());
    const auto granted = (*store)->apply_one(request, holdfast::Deadline::in(clock, 5s));
    if (!granted) return failed(granted.error());

    if (!trusted.passed(clock)) work(granted->lock.token);

    const auto released = (*store)->apply_one(holdfast::Release{*name, as}, holdfast::Deadline::in(clock, 5s));
    if (!released) return failed(released.error());
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 ? argv[1] : "memory:"); }
