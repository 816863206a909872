#include "harness/clients.hpp"
#include "harness/programs.hpp"
#include "harness/progress.hpp"
#include "measures/measures.hpp"
#include "measures/pruning.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::bench {
namespace {

constexpr int small = 1000;
constexpr int events_each = 10;
constexpr int group = 100;  ///< Locks below one prefix.

std::string name_of_lock(int i) { return fmt::format("held/{:06}/{:02}", i / group, i % group); }

Deadline soon() { return Deadline::in(host_clock(), std::chrono::seconds{60}); }

/// Held locks with ten events each, by the store itself: what lies there is what use would have left.
void fill(Store& store, int locks, const std::string& title) {
    const Holder holder = Holder::this_process();
    const Ttl ttl = Ttl::of(std::chrono::hours{12}).value();
    std::vector<Request> requests;
    for (int i = 0; i < locks; ++i) {
        const auto name = LockName::parse(name_of_lock(i)).value();
        const Credentials as = Credentials::random();
        requests.emplace_back(Acquire{.name = name, .as = as, .holder = holder, .ttl = ttl});
        for (int event = 1; event < events_each; ++event) requests.emplace_back(Renew{name, as, ttl});
        if ((i + 1) % group != 0) continue;
        const auto replies = store.apply(requests, soon());
        if (!replies) give_up(replies.error().message);
        for (const Reply& reply : *replies)
            if (!reply) give_up(reply.error().message);
        requests.clear();
        show_progress(fmt::format("{}: filled {} of {} locks", title, i + 1, locks));
    }
    end_progress(fmt::format("{}: filling {} locks", title, locks));
}

/// The middle one of some calls, in milliseconds.
template <class Call>
double time_of_call(Call call) {
    std::vector<double> took;
    for (int i = 0; i < 51; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        if (const auto answer = call(i); !answer) give_up(answer.error().message);
        took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    return quantile(std::move(took), 0.5);
}

/// What is measured on a store of any size.
struct Task {
    std::string name;
    std::string unit;
    std::optional<Goal> goal;
    double (*once)(Store& store, const Clients& clients);
};

const std::array tasks{
    Task{"pairs", "/s", Goal{0.8, Better::higher},
         [](Store&, const Clients& clients) { return pairs_per_second(clients, std::chrono::milliseconds{500}); }},
    Task{"status", "ms", std::nullopt,
         [](Store& store, const Clients&) {
             return time_of_call(
                 [&](int i) { return store.inspect(LockName::parse(name_of_lock(i * 17 % small)).value(), soon()); });
         }},
    Task{"list of 100 by prefix", "ms", std::nullopt,
         [](Store& store, const Clients&) {
             return time_of_call([&](int) { return store.list({.prefix = "held/000003/"}, soon()); });
         }},
    Task{"history of one lock", "ms", std::nullopt,
         [](Store& store, const Clients&) {
             return time_of_call([&](int i) {
                 return store.history({.name = LockName::parse(name_of_lock(i * 17 % small)).value()}, soon());
             });
         }},
};

std::vector<Line> grow(const Site& site, const std::string& title, std::string_view kind) {
    const auto few = opened(fresh_store(site, kind));
    const std::string url = fresh_store(site, kind);
    const auto lots = opened(url);
    fill(*few, small, "P10 " + title);
    fill(*lots, site.growth, "P10 " + title);
    const Clients few_client = library_clients(*few, 1);
    const Clients lots_client = library_clients(*lots, 1);
    const std::string sizes = fmt::format("{} locks, {} events", site.growth, std::int64_t{site.growth} * events_each);
    std::vector<Line> lines;
    for (const Task& task : tasks) {
        const std::array contenders{
            Contender{"small", [&] { return task.once(*few, few_client); }},
            Contender{"large", [&] { return task.once(*lots, lots_client); }},
        };
        const auto series = alternate(fmt::format("P10 {}, {}", title, task.name), contenders, site.rounds);
        lines.push_back({"P10", fmt::format("{}, {}, {}", title, task.name, sizes), task.unit,
                         fmt::format("with {} locks", small), series[0], series[1], task.goal});
    }
    const auto pruned = measure_beside_pruning(site, fmt::format("{}, {}", title, sizes), url);
    lines.insert(lines.end(), pruned.begin(), pruned.end());
    return lines;
}

}  // namespace

std::vector<Line> measure_growth(const Site& site) {
    std::vector<Line> lines;
    struct Place {
        std::string_view title;
        std::string_view kind;
    };
    constexpr std::array places{Place{"SQLite", "sqlite"}, Place{"PostgreSQL", "postgres"}, Place{"MariaDB", "mysql"},
                                Place{"Redis", "redis"}};
    for (const Place& place : places) {
        const auto some = grow(site, std::string(place.title), place.kind);
        lines.insert(lines.end(), some.begin(), some.end());
    }
    return lines;
}

}  // namespace holdfast::bench
