// Holds a lock while it works: waits in line, renews in the background, stops when the lease is lost. Quoted in
// docs/reference/library.md, built and run by tests/docs.

#include "holdfast/hold.hpp"

#include "holdfast/open.hpp"

#include <chrono>
#include <iostream>

namespace {

using namespace std::chrono_literals;

/// Stands for work in small steps. Gives the token to whatever it writes to.
void copy_one(int number, holdfast::FencingToken token) {
    std::cout << "copied file " << number << " with token " << token.value << '\n';
}

}  // namespace

int main() {
    auto store = holdfast::open_store("memory:");
    const auto name = holdfast::LockName::parse("backup/db");
    if (!store || !name) return 1;

    holdfast::HoldOptions options;
    options.operation = "nightly backup";
    options.wait = 1min;

    const auto copied = holdfast::with_lock(**store, *name, options, [](holdfast::Hold& hold) {
        int files = 0;
        // A lost lease stays lost: what is not done by then must not be done.
        while (files < 3 && !hold.lost().stop_requested()) copy_one(++files, hold.token());
        return files;
    });
    if (!copied) {
        std::cerr << copied.error().message << '\n';
        return holdfast::row_of(copied.error().code).exit_status;
    }
    return *copied == 3 ? 0 : 1;
}
