// Elects a leader, shows it to observers, and passes the fencing token on. Quoted in docs/reference/library.md, built
// and run by tests/docs.

#include "holdfast/election.hpp"

#include "holdfast/open.hpp"

#include <chrono>
#include <future>
#include <iostream>

namespace {

using namespace std::chrono_literals;

/// Stands for what only the leader may change. It remembers the newest leader, and refuses those before it.
class Ledger {
public:
    bool write(holdfast::FencingToken token, const std::string& line) {
        if (token < newest_) return false;
        newest_ = token;
        std::cout << line << " (token " << token.value << ")\n";
        return true;
    }

private:
    holdfast::FencingToken newest_{};
};

holdfast::Result<void> lead(const holdfast::Election& election, Ledger& ledger) {
    holdfast::HoldOptions options;
    options.ttl = *holdfast::Ttl::of(10s);  // For so long a leader that crashed keeps the others waiting.
    auto term = election.campaign("starting", options);
    if (!term) return std::unexpected(term.error());
    if (auto told = term->proclaim("10.0.0.7:8080"); !told) return told;

    for (int entry = 1; entry <= 3 && !term->lost().stop_requested(); ++entry)
        if (!ledger.write(term->token(), "entry " + std::to_string(entry))) break;  // There is a newer leader.
    return term->resign();
}

}  // namespace

int main() {
    auto store = holdfast::open_store("memory:");
    const auto name = holdfast::LockName::parse("leader/billing");
    if (!store || !name) return 1;
    const holdfast::Election election(**store, *name);

    std::promise<void> seen;
    const auto watch = election.observe(
        [&, told = false](const holdfast::Result<std::optional<holdfast::Leader>>& leader) mutable {
            if (!leader) std::cout << "nobody knows who leads: " << leader.error().message << '\n';
            if (!told && leader && !*leader) seen.set_value();
            told = true;
        });
    if (!watch) return 1;
    seen.get_future().wait();

    Ledger ledger;
    const auto led = lead(election, ledger);
    if (!led) std::cerr << led.error().message << '\n';
    return led ? 0 : holdfast::row_of(led.error().code).exit_status;
}
