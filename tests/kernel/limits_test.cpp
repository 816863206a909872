// The limits of a request's texts. They are checked before anything else, so nothing oversized is ever stored.

#include "kernel/little_store.hpp"
#include "kernel/refusal.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using kernel::beyond_limits;

const std::string not_utf8 = "caf\xe9";

class LimitsTest : public KernelTest {
protected:
    static void expect_fine(const Request& request) {
        const auto error = beyond_limits(request);
        EXPECT_FALSE(error) << error->message;
    }
    void expect_refused(const Request& request) {
        const auto error = beyond_limits(request);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, Errc::usage);
        expect_untouched(request, Errc::usage);
    }

    /// Tries a text of one line: its limit, one byte more, a control character, bytes that are no UTF-8.
    template <class Make>
    void expect_line(std::size_t limit, Make make) {
        expect_fine(make(std::string(limit, 'x')));
        expect_refused(make(std::string(limit + 1, 'x')));
        expect_refused(make("two\nlines"));
        expect_refused(make("esc\x1b[2J"));
        expect_refused(make("c1\xc2\x9b"));
        expect_refused(make(std::string("nul\0", 4)));
        expect_refused(make(not_utf8));
    }

    /// Tries a text that may have several lines.
    template <class Make>
    void expect_prose(std::size_t limit, Make make) {
        expect_fine(make(""));
        expect_fine(make("two\nlines"));
        expect_fine(make(std::string(limit, 'x')));
        expect_refused(make(std::string(limit + 1, 'x')));
        expect_refused(make(not_utf8));
    }

    [[nodiscard]] Acquire acquire() const { return by_alice(name_); }
    [[nodiscard]] Transfer transfer() const {
        return {name_, Credentials::random(), Holder{"bob", ""}, Credentials::random(), ""};
    }
    [[nodiscard]] Break breaking() const { return {name_, LockId::random(), "root", ""}; }
    [[nodiscard]] Ask asking() const {
        return {name_, Credentials::random(), Holder{"bob", ""}, "", lasting(1s), lasting(1s)};
    }
    [[nodiscard]] Answer answer() const { return {name_, LockId::random(), Verdict::deny, "root", "", {}}; }
};

TEST_F(LimitsTest, HoldersAreNamedInOneLineAndNeverEmpty) {
    const auto acquire_by = [&](std::string text) {
        auto r = acquire();
        r.holder.text = std::move(text);
        return r;
    };
    const auto transfer_to = [&](std::string text) {
        auto r = transfer();
        r.to.text = std::move(text);
        return r;
    };
    const auto asked_by = [&](std::string text) {
        auto r = asking();
        r.holder.text = std::move(text);
        return r;
    };
    expect_line(255, acquire_by);
    expect_line(255, transfer_to);
    expect_line(255, asked_by);
    expect_refused(acquire_by(""));
    expect_refused(transfer_to(""));
    expect_refused(asked_by(""));
}

TEST_F(LimitsTest, UsersAreNamedInOneLineOrNotAtAll) {
    expect_line(255, [&](std::string text) {
        auto r = acquire();
        r.holder.user = std::move(text);
        return r;
    });
    expect_line(255, [&](std::string text) {
        auto r = transfer();
        r.to.user = std::move(text);
        return r;
    });
    expect_line(255, [&](std::string text) {
        auto r = asking();
        r.holder.user = std::move(text);
        return r;
    });
    expect_fine(acquire());
}

TEST_F(LimitsTest, AnOperationIsOneLine) {
    expect_line(255, [&](std::string text) {
        auto r = acquire();
        r.operation = std::move(text);
        return r;
    });
}

TEST_F(LimitsTest, ReasonsMayHaveSeveralLines) {
    const auto with = [](auto request) {
        return [request](std::string text) {
            auto r = request;
            r.reason = std::move(text);
            return r;
        };
    };
    expect_prose(1024, with(acquire()));
    expect_prose(1024, with(transfer()));
    expect_prose(1024, with(breaking()));
    expect_prose(1024, with(asking()));
    expect_prose(1024, with(answer()));
}

TEST_F(LimitsTest, TheActorOfABreakOrAnswerMustBeNamed) {
    const auto broken_by = [&](std::string text) {
        auto r = breaking();
        r.actor = std::move(text);
        return r;
    };
    const auto answered_by = [&](std::string text) {
        auto r = answer();
        r.actor = std::move(text);
        return r;
    };
    expect_line(255, broken_by);
    expect_line(255, answered_by);
    expect_refused(broken_by(""));
    expect_refused(answered_by(""));
}

TEST_F(LimitsTest, MetaIsBoundedAsAWhole) {
    const auto with = [&](std::map<std::string, std::string> meta) {
        auto r = acquire();
        r.meta = std::move(meta);
        return r;
    };
    expect_fine(with({{"k", std::string(4095, 'x')}}));
    expect_refused(with({{"k", std::string(4096, 'x')}}));
    expect_refused(with({{"a", std::string(2048, 'x')}, {"b", std::string(2048, 'x')}}));
    expect_fine(with({{"k", "two\nlines"}}));
    expect_refused(with({{"two\nlines", "v"}}));
    expect_refused(with({{not_utf8, "v"}}));
    expect_refused(with({{"k", not_utf8}}));
}

TEST_F(LimitsTest, ExclusionsAreFewAndNeverOneself) {
    std::vector<LockName> names;
    for (int i = 0; i < 16; ++i) names.push_back(lock("other/" + std::to_string(i)));
    Acquire take = acquire();
    Check look = check(name_, FencingToken{1});
    take.unless_held = look.unless_held = names;
    expect_fine(take);
    expect_fine(look);

    names.push_back(lock("other/16"));
    take.unless_held = look.unless_held = names;
    expect_refused(take);
    expect_refused(look);

    take.unless_held = look.unless_held = {lock("other"), name_};
    expect_refused(take);
    expect_refused(look);
}

TEST_F(LimitsTest, ALongestHoldHasTheLimitsOfATtl) {
    const auto with = [&](std::chrono::milliseconds time) {
        auto r = acquire();
        r.max_hold = time;
        return r;
    };
    expect_fine(with(Ttl::shortest));
    expect_fine(with(Ttl::longest));
    expect_refused(with(Ttl::shortest - 1ms));
    expect_refused(with(Ttl::longest + 1ms));
    expect_refused(with(0ms));
    expect_refused(with(-1h));
    expect_refused(with(std::chrono::milliseconds::max()));
}

TEST_F(LimitsTest, ATransferNeedsANewLockId) {
    Transfer request = transfer();
    request.to_as.lock_id = request.as.lock_id;
    expect_refused(request);
}

TEST_F(LimitsTest, RequestsWithoutTextsAreAlwaysWithinThem) {
    expect_fine(renewal(acquire()));
    expect_fine(release(acquire()));
    expect_fine(cancel(acquire()));
}

}  // namespace
}  // namespace holdfast::tests
