// Lets a lease run out without waiting for it. Quoted in docs/reference/library.md, built and run by tests/docs.

#include "holdfast/open.hpp"

#include <chrono>
#include <iostream>

namespace {

using namespace std::chrono_literals;

holdfast::Acquire request_of(std::string holder, holdfast::Ttl ttl) {
    return {.name = *holdfast::LockName::parse("backup"),
            .as = holdfast::Credentials::random(),
            .holder = {std::move(holder), ""},
            .ttl = ttl};
}

}  // namespace

int main() {
    holdfast::ManualClock clock;
    auto store = holdfast::open_store("memory:", clock);
    if (!store) return 1;
    const holdfast::Acquire first = request_of("first", *holdfast::Ttl::of(30s));
    if (!(*store)->apply_one(first, holdfast::Deadline::never())) return 1;

    clock.advance(30s);
    const auto second = (*store)->apply_one(request_of("second", *holdfast::Ttl::of(30s)), holdfast::Deadline::never());
    if (!second || !second->stolen_from) return 1;

    std::cout << "second took over from " << second->stolen_from->holder.text << '\n';
    return 0;
}
