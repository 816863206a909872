// Goal: a lock fits where the standard library wants a mutex. Method: its wrappers on the memory store.

#include "holdfast/lockable.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class LockableTest : public testing::Test {
protected:
    [[nodiscard]] LockState state(std::string_view name) {
        return must(store_->inspect(lock(name), Deadline::in(host_clock(), 10s))).state;
    }

    std::unique_ptr<Store> store_ = must(open_store("memory:"));
    Lockable web_{*store_, lock("web")};
    Lockable database_{*store_, lock("database")};
};

TEST_F(LockableTest, TwoAreTakenTogetherWithoutDeadlock) {
    int both = 0;
    {
        std::jthread other([&] {
            Lockable own_web{*store_, lock("web")};
            Lockable own_database{*store_, lock("database")};
            for (int i = 0; i < 20; ++i) {
                const std::scoped_lock guard(own_database, own_web);
                ++both;
            }
        });
        for (int i = 0; i < 20; ++i) {
            const std::scoped_lock guard(web_, database_);
            EXPECT_TRUE(web_.hold().token().value > 0);
            ++both;
        }
    }
    EXPECT_EQ(both, 40);
    EXPECT_EQ(state("web"), LockState::free);
    EXPECT_EQ(state("database"), LockState::free);
}

TEST_F(LockableTest, OneThatSomebodyElseHoldsIsNotTaken) {
    must(store_->apply_one(by_bob(lock("web")), Deadline::in(host_clock(), 10s)));
    EXPECT_FALSE(std::unique_lock(web_, std::try_to_lock).owns_lock());
    EXPECT_FALSE(web_.try_lock_for(50ms));
    EXPECT_TRUE(std::unique_lock(database_, std::try_to_lock).owns_lock());
}

TEST_F(LockableTest, ARefusalThatNoWaitCanEndIsThrown) {
    HoldOptions options;
    options.operation = std::string(2000, 'x');
    Lockable never{*store_, lock("web"), options};
    try {
        never.lock();
        FAIL() << "it was locked";
    } catch (const LockError& error) {
        EXPECT_EQ(error.error().code, Errc::usage);
    }
    EXPECT_THROW(static_cast<void>(never.try_lock()), LockError);
}

}  // namespace
}  // namespace holdfast::tests
