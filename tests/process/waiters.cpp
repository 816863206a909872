// Goal: what waiting costs that has no thread for each waiter. Method: thousands of waiters of this process in the
// queue of one lock, which then goes through some hundred of them; says how many threads, how much memory, and how many
// wake-ups that took. Ends with 1 if a grant took more than two wake-ups, or all waiters more than one thread.
// usage: waiters [--waiters N] [--grants N] [memory|file|sqlite|URL]...
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"
#include "support/watching_crowd.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;

struct Settings {
    int waiters = 10'000;
    int grants = 300;
    std::vector<std::string> stores{};
};

Settings settings_of(const std::vector<std::string>& words) {
    Settings settings;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const bool has_value = at + 1 < words.size();
        if (words[at] == "--waiters" && has_value)
            settings.waiters = std::stoi(words[++at]);
        else if (words[at] == "--grants" && has_value)
            settings.grants = std::stoi(words[++at]);
        else
            settings.stores.push_back(words[at]);
    }
    if (settings.stores.empty()) settings.stores = {"memory", "file", "sqlite"};
    return settings;
}

bool is_cheap(const std::string& name, const Settings& settings) {
    const tests::TempFolder folder;
    const bool is_scheme = name.find(':') == std::string::npos;
    const std::string place = name == "memory" ? "" : (folder.path() / "store").string();
    const auto store = tests::must(open_store(is_scheme ? name + ":" + place : name));
    const tests::CrowdCost cost = tests::cost_of_crowd(*store, settings.waiters, settings.grants);
    fmt::print(
        "{}: {} waiters: {} more threads, {} KiB more memory, ready after {} ms; {} grants: {} wake-ups, {} us each\n",
        store->info().url, settings.waiters, cost.threads, cost.memory_kb, cost.for_all.count() / 1000, cost.grants,
        cost.wake_ups, cost.for_grant.count());
    std::fflush(stdout);
    return cost.threads <= 1 && cost.wake_ups <= 2 * cost.grants;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Settings settings = settings_of({argv + 1, argv + argc});
        bool all = true;
        for (const std::string& name : settings.stores) all = is_cheap(name, settings) && all;
        return all ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "waiters: {}\n", error.what());
        return 2;
    }
}
