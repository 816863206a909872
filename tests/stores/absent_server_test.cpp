// Goal: a server that is gone is not called over and over by its clients, so that it is not flooded in the moment in
// which it comes back; and then it is found. Method: nobody listens behind a proxy any more, and callers have little
// time.
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"
#include "support/servers/proxy.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class AbsentServer : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Deadline within(std::chrono::milliseconds time) { return Deadline::in(host_clock(), time); }

    const ServerPlace place_{GetParam()};
    Proxy proxy_{place_.port()};
    const std::unique_ptr<Store> store_ = must(open_store(place_.url(proxy_.port())));
};

TEST_P(AbsentServer, IsAskedLessAndLessOftenAndFoundWhenItComesBack) {
    must(store_->apply_one(by_alice(lock("x"), 1h), within(20s)));
    // Not by losing an answer (Fate::lose_server): on a busy machine a caller that has 20 ms hangs up before the answer
    // begins, the server is never lost, and the next caller finds it.
    proxy_.leave();
    int spared = 0;
    for (int call = 0; call < 50; ++call) {
        const auto status = store_->inspect(lock("x"), within(20ms));
        ASSERT_THAT(status, RefusedWith(Errc::store_unavailable));
        if (status.error().message.find("just now") != std::string::npos) ++spared;
    }
    EXPECT_GT(spared, 0) << "nobody waits for a pause that is longer than its time";
    proxy_.come_back();
    EXPECT_TRUE(must(store_->inspect(lock("x"), within(20s))).lease);
}

INSTANTIATE_TEST_SUITE_P(Servers, AbsentServer, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
