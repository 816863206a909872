// A user's program: takes a lock, is refused a second time, gives the lock back, on each store that the environment
// names in CONSUMER_STORES, separated by blanks: a URL may hold a password. Exit status 0 if all of it happened.

#include "holdfast/open.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

int give_up(const holdfast::Error& error) {
    std::fprintf(stderr, "consumer: %s: %s\n", holdfast::row_of(error.code).name.data(), error.message.c_str());
    return 1;
}

int use(const std::string& url) {
    auto store = holdfast::open_store(url);
    if (!store) return give_up(store.error());

    const auto name = holdfast::LockName::parse("consumer/lock");
    if (!name) return give_up(name.error());
    const auto ttl = holdfast::Ttl::of(std::chrono::seconds{30});
    if (!ttl) return give_up(ttl.error());

    const auto deadline = holdfast::Deadline::in(holdfast::host_clock(), std::chrono::seconds{10});
    holdfast::Acquire request{.name = *name, .as = holdfast::Credentials::random(), .ttl = *ttl};
    request.holder = holdfast::Holder::this_process();
    const auto mine = request.as;
    const auto held = (*store)->apply_one(request, deadline);
    if (!held) return give_up(held.error());

    request.as = holdfast::Credentials::random();
    const auto second = (*store)->apply_one(request, deadline);
    if (second || second.error().code != holdfast::Errc::lock_conflict) return 2;

    const auto released = (*store)->apply_one(holdfast::Release{*name, mine}, deadline);
    return released ? 0 : give_up(released.error());
}

}  // namespace

int main() {
    const char* const stores = std::getenv("CONSUMER_STORES");
    std::istringstream urls(stores == nullptr ? "" : stores);
    int used = 0;
    for (std::string url; urls >> url; ++used)
        if (const int status = use(url); status != 0) return status;
    return used > 0 ? 0 : 64;
}
