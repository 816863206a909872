// Goal: a program that holds a thousand locks pays for them with three threads, on every store. Method: a thousand
// holds that are renewed meanwhile, and the threads of this process counted all the while.
#include "client/watching.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr int takers = 16;

std::vector<std::string> all_kinds() {
    std::vector<std::string> kinds = network_kinds();
    for (const char* kind : {"memory", "file", "sqlite"}) kinds.emplace_back(kind);
    return kinds;
}

class ManyHolds : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::string url() {
        if (GetParam() == "memory") return "memory:";
        if (GetParam() == "file" || GetParam() == "sqlite")
            return GetParam() + ":" + (folder_.path() / "store").string() + "?sync=off";
        if (GetParam() == "http") {
            // A process of its own: the threads of a daemon in this one would be counted, too.
            daemon_ = start_daemon();
            return fmt::format("http://127.0.0.1:{}", daemon_->port());
        }
        return place_.emplace(GetParam()).url();
    }

    /// Several threads at once, so that they share round trips.
    [[nodiscard]] std::list<Hold> take(Store& store, int count) {
        HoldOptions options;
        options.ttl = lasting(120s);
        options.renew_interval = 1500ms;
        std::mutex mutex;
        std::list<Hold> holds;
        {
            std::vector<std::jthread> threads;
            for (int taker = 0; taker < takers; ++taker)
                threads.emplace_back([&, taker] {
                    for (int i = taker; i < count; i += takers) {
                        auto held = must(hold(store, fmt::format("job/{:04}", i), options));
                        const std::scoped_lock lock(mutex);
                        holds.push_back(std::move(held));
                    }
                });
        }
        return holds;
    }

    const TempFolder folder_;
    std::unique_ptr<Server> daemon_;
    std::optional<ServerPlace> place_;
};

TEST_P(ManyHolds, NeedThreeThreads) {
    const auto store = must(open_store(url()));
    must(store->apply({}, Deadline::in(host_clock(), 60s)));
    ASSERT_TRUE(becomes_true([] { return threads_of_the_library() == 0; })) << "none is needed for the store itself";
    auto holds = take(*store, scaled(1000));
    std::ptrdiff_t most = 0;
    EXPECT_TRUE(becomes_true([&] {
        most = std::max(most, threads_of_the_library());
        std::this_thread::sleep_for(20ms);
        return std::ranges::all_of(holds, [](const Hold& each) { return each.lease().renew_seq >= 1; });
    }));
    EXPECT_LE(most, 3) << "the timekeeper, a worker, and the hub";
    for (Hold& each : holds) EXPECT_FALSE(each.loss());
    // A thousand releases are not what is measured here.
    for (Hold& each : holds) each.abandon();
}

INSTANTIATE_TEST_SUITE_P(Stores, ManyHolds, testing::ValuesIn(all_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
