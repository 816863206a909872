// Goal: whatever answers in the place of a daemon, nobody takes it for a grant or for a refusal that it is not, and
// nobody else is told a secret. Method: an actor that speaks HTTP gives answers that no daemon gives, and counts what
// it is asked.
#include "json/error.hpp"
#include "json/event.hpp"
#include "json/lock.hpp"
#include "json/store.hpp"
#include "stores/http/http_store.hpp"
#include "stores/http_fixture.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/variable.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

Deadline soon() { return Deadline::in(host_clock(), 20s); }

StoreInfo daemons_store() {
    return {.url = "sqlite:/var/lib/locks.db", .grade = Grade::a, .reasons = {"it is tested"}};
}

/// A grant, as a daemon says it.
std::string granted(const Acquire& request) {
    LockStatus status{.name = request.name, .state = LockState::held, .token = {7}};
    status.seq = 1;
    status.lease = Lease{.lock_id = request.as.lock_id, .token = {7}, .holder = request.holder};
    return json::reply(Outcome{status}, daemons_store()).done().written();
}

std::string replies(const std::vector<std::string>& each) {
    return fmt::format(R"({{"replies":[{}]}})", fmt::join(each, ","));
}

std::string refusal(Errc code, std::string_view message) {
    return json::error({code, std::string(message)}, "", std::nullopt).done().written();
}

class HttpAnswers : public testing::Test {
protected:
    /// Answers everything but what is needed to open the store.
    void answer(HttpActor::Answer rest) { rest_ = std::move(rest); }
    void answer_with(int status, const std::string& body, const std::string& headers = "") {
        answer([=](const HttpAsked&) { return HttpActor::reply(status, body, headers); });
    }

    [[nodiscard]] std::unique_ptr<Store> open(std::string_view url) {
        return must(stores::open_http_store(must(base::Url::parse(url)), host_clock()));
    }
    [[nodiscard]] std::unique_ptr<Store> open() { return open(actor_.url()); }

    HttpActor::Answer rest_ = [](const HttpAsked&) { return std::string(); };
    HttpActor actor_{[this](const HttpAsked& asked) {
        const std::string time = fmt::format("Holdfast-Time: {}\r\n", daemon_time_.load());
        if (asked.is_for("/healthz")) return HttpActor::reply(200, R"({"alive":true})", time);
        if (asked.is_for("/v1/store"))
            return HttpActor::reply(
                200, json::examination(daemons_store(), {.shows_only_durable = true}, {}).done().written(), time);
        return rest_(asked);
    }};
    std::atomic<std::int64_t> daemon_time_ = 1'800'000'000'000;
};

TEST_F(HttpAnswers, ThatWereCarriedOutOrNotAreToldApart) {
    struct Case {
        int status;
        std::string body;
        Errc expected;
    };
    const std::vector<Case> cases{
        {200, "", Errc::outcome_unknown},
        {200, "<html>", Errc::outcome_unknown},
        {200, "{}", Errc::outcome_unknown},
        {200, R"({"replies":[]})", Errc::outcome_unknown},
        {200, R"({"replies":[{}]})", Errc::outcome_unknown},
        {204, "", Errc::outcome_unknown},
        {500, "", Errc::outcome_unknown},
        {502, "<html>Bad Gateway</html>", Errc::outcome_unknown},
        {503, "overloaded", Errc::outcome_unknown},
        {504, "", Errc::outcome_unknown},
        {504, refusal(Errc::outcome_unknown, "sent"), Errc::outcome_unknown},
        {503, refusal(Errc::store_unavailable, "away"), Errc::store_unavailable},
        {403, refusal(Errc::denied, "no"), Errc::denied},
        {400, refusal(Errc::usage, "no"), Errc::usage},
        {400, "no", Errc::store_unavailable},
        {404, "", Errc::store_unavailable},
        {401, "", Errc::denied},
        {403, "<html>", Errc::denied},
        {302, "", Errc::store_unavailable},
        {413, "", Errc::store_unavailable},
    };
    const auto store = open();
    for (const auto& [status, body, expected] : cases) {
        answer_with(status, body);
        EXPECT_THAT(store->apply_one(release(by_alice(lock("x"))), soon()), RefusedWith(expected))
            << status << " " << body;
    }
}

TEST_F(HttpAnswers, ThatReadNothingLeaveNothingUnknown) {
    const auto store = open();
    for (const auto& [status, body] : std::vector<std::pair<int, std::string>>{
             {200, ""}, {200, "{}"}, {200, "[[[["}, {200, R"({"locks":[{}]})"}, {500, ""}, {502, "x"}, {404, ""}}) {
        answer_with(status, body);
        EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::store_unavailable)) << status << body;
        EXPECT_THAT(store->list({}, soon()), RefusedWith(Errc::store_unavailable)) << status << body;
        EXPECT_THAT(store->history({}, soon()), RefusedWith(Errc::store_unavailable)) << status << body;
        EXPECT_THAT(store->events({}, 10, soon()), RefusedWith(Errc::store_unavailable)) << status << body;
        EXPECT_THAT(store->end_of_events(soon()), RefusedWith(Errc::store_unavailable)) << status << body;
    }
}

TEST_F(HttpAnswers, ToAnotherRequestAreNoGrant) {
    const auto store = open();
    const Acquire mine = by_alice(lock("x"));
    answer_with(200, replies({granted(mine)}));
    EXPECT_THAT(store->apply_one(mine, soon()), Granted());
    const Acquire others_lock = by_alice(lock("y"));
    const Acquire others_lease = by_bob(lock("x"));
    for (const Acquire& other : {others_lock, others_lease}) {
        answer_with(200, replies({granted(other)}));
        EXPECT_THAT(store->apply_one(mine, soon()), RefusedWith(Errc::outcome_unknown));
    }
    answer_with(200, replies({granted(mine), granted(mine)}));
    EXPECT_THAT(store->apply_one(mine, soon()), RefusedWith(Errc::outcome_unknown));
}

TEST_F(HttpAnswers, AboutAnotherLockAreNoStatus) {
    const auto store = open();
    answer_with(200, json::lock({.name = lock("y")}, daemons_store()).done().written());
    EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::store_unavailable));
}

TEST_F(HttpAnswers, ThatNeverEndAreCutOff) {
    const auto store = open();
    answer([](const HttpAsked&) {
        return "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + std::string(std::size_t{80} << 20, ' ');
    });
    EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::store_unavailable));
}

TEST_F(HttpAnswers, WhosePagesRepeatThemselvesEnd) {
    const auto store = open();
    const std::string page = json::locks({LockStatus{.name = lock("x")}}, daemons_store())
                                 .set("more", json::Value::boolean(true))
                                 .done()
                                 .written();
    answer_with(200, page);
    EXPECT_THAT(store->list({.with_free = true}, soon()), RefusedWith(Errc::store_unavailable));
    answer_with(200, R"({"locks":[],"more":true})");
    EXPECT_THAT(store->list({.with_free = true}, soon()), RefusedWith(Errc::store_unavailable));
    answer_with(200, R"({"events":[],"more":true})");
    EXPECT_THAT(store->history({}, soon()), RefusedWith(Errc::store_unavailable));
}

TEST_F(HttpAnswers, ThatSendTheCallerElsewhereAreNotFollowed) {
    HttpActor elsewhere([](const HttpAsked&) { return HttpActor::reply(200, "{}"); });
    const auto store = open("http://canary@" + actor_.url().substr(7));
    for (const int status : {301, 302, 303, 307, 308}) {
        answer_with(status, "",
                    fmt::format("Location: http://127.0.0.1:{}/v1/batch?token=canary\r\n", elsewhere.port()));
        const auto read = store->inspect(lock("x"), soon());
        ASSERT_THAT(read, RefusedWith(Errc::store_unavailable));
        EXPECT_THAT(read.error().message, AllOf(HasSubstr("elsewhere"), Not(HasSubstr("canary"))));
        EXPECT_THAT(store->apply_one(release(by_alice(lock("x"))), soon()), RefusedWith(Errc::store_unavailable));
    }
    EXPECT_EQ(elsewhere.count("/"), 0) << "it was sent the token";
}

TEST_F(HttpAnswers, AreAskedForWithTheToken) {
    const auto store = open("http://canary@" + actor_.url().substr(7));
    EXPECT_THAT(store->info().url, Not(HasSubstr("canary")));
    for (const HttpAsked& asked : actor_.asked("/")) EXPECT_EQ(asked.header("Authorization"), "Bearer canary");
    const auto none = open();
    EXPECT_EQ(actor_.asked("/v1/store").back().header("Authorization"), "");
}

TEST_F(HttpAnswers, OfALoopbackAreNotAskedOfAProxy) {
    HttpActor proxy([](const HttpAsked&) { return HttpActor::reply(200, "{}"); });
    const Variable http("http_proxy", proxy.url());
    const Variable all("all_proxy", proxy.url());
    const auto store = open();
    EXPECT_EQ(proxy.count(""), 0);
}

TEST_F(HttpAnswers, ThatAreMissingLetARequestBeRepeatedOnlyIfThatIsSafe) {
    const auto store = open();
    const Acquire mine = by_alice(lock("x"));
    answer([](const HttpAsked&) { return std::string(); });
    const auto sent = [&](const Request& request) {
        const int before = actor_.count("/v1/batch");
        EXPECT_THAT(store->apply_one(request, soon()), RefusedWith(Errc::outcome_unknown));
        return actor_.count("/v1/batch") - before;
    };
    EXPECT_EQ(sent(renewal(mine)), 1) << "a repeat would be a second renewal";
    EXPECT_EQ(sent(release(mine)), 2);
    EXPECT_EQ(sent(ReportFenced{.name = lock("x")}), 1) << "a repeat would write another event";
    EXPECT_EQ(sent(mine), 1) << "nothing shows that it was granted";
}

TEST_F(HttpAnswers, ThatAreMissingAreMadeUpForWhereTheLeaseIsThere) {
    const auto store = open();
    const Acquire mine = by_alice(lock("x"));
    answer([&](const HttpAsked& asked) {
        LockStatus status{.name = mine.name, .state = LockState::held, .token = {7}};
        status.lease = Lease{.lock_id = mine.as.lock_id, .token = {7}, .holder = mine.holder};
        if (asked.is_for("/v1/lock"))
            return HttpActor::reply(200, json::lock(status, daemons_store()).done().written());
        return std::string();
    });
    EXPECT_THAT(store->apply_one(mine, soon()), Granted());
    EXPECT_EQ(actor_.count("/v1/batch"), 1) << "no renewal that nobody asked for";
}

// After an answer that is missing, a refusal may be that of the second copy for what the first one did.
TEST_F(HttpAnswers, ThatRefuseARepeatedRequestLeaveItUnknown) {
    const auto store = open();
    answer([&](const HttpAsked&) {
        return actor_.count("/v1/batch") == 1
                   ? ""
                   : HttpActor::reply(200, replies({refusal(Errc::lock_not_held, "nothing of yours is there")}));
    });
    EXPECT_THAT(store->apply_one(Break{lock("x"), LockId::random(), "root", "it is needed"}, soon()),
                RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(actor_.count("/v1/batch"), 2);
}

TEST_F(HttpAnswers, AreWantedBeforeTheCallerGivesUp) {
    const auto store = open();
    answer_with(200, replies({refusal(Errc::lock_not_held, "no")}));
    EXPECT_FALSE(store->apply_one(release(by_alice(lock("x"))), Deadline::in(host_clock(), 5s)));
    const std::int64_t before = std::stoll(actor_.asked("/v1/batch").back().header("Holdfast-Before"));
    EXPECT_LE(before, daemon_time_ + 5000 + 3000) << "at most what has passed since the daemon told the time";
    EXPECT_GT(before, daemon_time_);
}

// Its clock was set. What came in time is not late for that.
TEST_F(HttpAnswers, OfADaemonWhoseClockWasMovedAreAskedForAgain) {
    const auto store = open();
    daemon_time_ += 3'600'000;
    answer([&](const HttpAsked& asked) {
        const std::string time = fmt::format("Holdfast-Time: {}\r\n", daemon_time_.load());
        if (std::stoll(asked.header("Holdfast-Before")) < daemon_time_)
            return HttpActor::reply(503, refusal(Errc::store_unavailable, "too late"), time);
        return HttpActor::reply(200, replies({refusal(Errc::lock_not_held, "no")}), time);
    });
    EXPECT_THAT(store->apply_one(release(by_alice(lock("x"))), soon()), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(actor_.count("/v1/batch"), 2);
}

TEST_F(HttpAnswers, TellThatAStoreIsLost) {
    const auto store = open();
    Error lost{Errc::store_unavailable, "it was emptied"};
    lost.store_is_lost = true;
    answer_with(503, json::error(lost, "", std::nullopt).done().written());
    const auto reply = store->apply_one(release(by_alice(lock("x"))), soon());
    ASSERT_THAT(reply, RefusedWith(Errc::store_unavailable));
    EXPECT_TRUE(reply.error().store_is_lost);
}

TEST_F(HttpAnswers, ToAWaiterAreTrustedOnlyAsHints) {
    const auto store = open();
    for (const char* body :
         {"", "{}", R"({"fired":[{"index":7}]})", R"({"fired":[{"index":-1}]})", R"({"fired":{}})"}) {
        answer_with(200, body);
        EXPECT_THAT(store->wait_for_change({.name = lock("x")}, soon()), RefusedWith(Errc::store_unavailable)) << body;
    }
    answer_with(200, R"({"fired":[{"index":0,"handed_on":null,"error":{"code":"E_DENIED","message":"no"}}]})");
    EXPECT_THAT(store->wait_for_change({.name = lock("x")}, soon()), RefusedWith(Errc::denied));
    const LockId ticket = LockId::random();
    answer([&](const HttpAsked& asked) {
        if (asked.is_for("/v1/lock"))
            return HttpActor::reply(200, json::lock({.name = lock("x")}, daemons_store()).done().written());
        return HttpActor::reply(200, R"({"fired":[{"index":0,"handed_on":{"name":"x"}}]})");
    });
    const auto woken = store->wait_for_change({.name = lock("x"), .ticket = ticket}, soon());
    ASSERT_THAT(woken, Granted());
    EXPECT_FALSE(*woken) << "the lock does not have its lease";
}

TEST_F(HttpAnswers, OfSomethingElseOpenNoStore) {
    for (const auto& [status, body] :
         std::vector<std::pair<int, std::string>>{{200, "hello"}, {200, "{}"}, {404, "<html>"}, {500, ""}, {302, ""}}) {
        HttpActor other([&](const HttpAsked&) { return HttpActor::reply(status, body); });
        EXPECT_THAT(stores::open_http_store(must(base::Url::parse(other.url())), host_clock()),
                    RefusedWith(Errc::store_unavailable))
            << status << body;
    }
    HttpActor refuses([](const HttpAsked& asked) {
        return asked.is_for("/healthz") ? HttpActor::reply(200, "{}")
                                        : HttpActor::reply(401, refusal(Errc::denied, "who are you?"));
    });
    EXPECT_THAT(stores::open_http_store(must(base::Url::parse(refuses.url())), host_clock()),
                RefusedWith(Errc::denied));
}

}  // namespace
}  // namespace holdfast::tests
