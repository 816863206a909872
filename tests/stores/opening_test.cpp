// Goal: a program that opens a store decides how long that may last, and can end it. Method: a proxy that takes
// connections and delivers nothing, so that the driver would wait for as long as its own limits allow.
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/server_place.hpp"
#include "support/servers/proxy.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class Opening : public testing::TestWithParam<std::string> {
protected:
    // What was held up arrives, so that those that were left behind end, too.
    ~Opening() override { proxy_.become({}); }

    [[nodiscard]] Result<std::unique_ptr<Store>> open(const OpenOptions& options) {
        return open_store(place_.url(proxy_.port()), options);
    }

    const ServerPlace place_{GetParam()};
    Proxy proxy_{place_.port()};
};

TEST_P(Opening, EndsWithTheTimeThatItWasGiven) {
    EXPECT_THAT(open({.deadline = Deadline::in(host_clock(), 60s)}), Granted());
    proxy_.become({.holds_requests = true, .holds_replies = true});
    const auto opened = open({.deadline = Deadline::in(host_clock(), 200ms)});
    ASSERT_THAT(opened, RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(opened.error().message, testing::HasSubstr("in the time for opening it"));
}

TEST_P(Opening, CanBeCancelled) {
    proxy_.become({.holds_requests = true, .holds_replies = true});
    std::stop_source cancel;
    const std::uint64_t before = proxy_.messages();
    std::jthread canceller([&] {
        // A MySQL client sends nothing before its server does.
        const Deadline end = Deadline::in(host_clock(), 200ms);
        while (proxy_.messages() == before && !end.passed(host_clock())) std::this_thread::yield();
        cancel.request_stop();
    });
    EXPECT_THAT(open({.cancel = cancel.get_token()}), RefusedWith(Errc::cancelled));
    EXPECT_THAT(open({.cancel = cancel.get_token()}), RefusedWith(Errc::cancelled)) << "nothing is begun any more";
}

INSTANTIATE_TEST_SUITE_P(Servers, Opening, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
