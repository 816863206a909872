// Who may do what: every cell of role × endpoint × area, against a table that is written here by hand.
#include "access/decision.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace holdfast::access {
namespace {

using testing::HasSubstr;

LockName lock(const char* text) { return *LockName::parse(text); }
Ttl some_ttl() { return *Ttl::of(std::chrono::seconds{10}); }

Identity caller(std::vector<Grant> grants, std::string user = "alice") {
    return {.auth = Auth::token, .user = std::move(user), .address = "10.0.0.7", .grants = std::move(grants)};
}

/// What each role may do with a lock of its area. What a row does not have is refused.
const std::map<Role, std::set<std::string>> on_locks{
    {Role::viewer, {"check", "gate", "wait", "lock"}},
    {Role::holder,
     {"check", "gate", "wait", "lock", "acquire", "renew", "release", "cancel", "transfer", "fenced", "expire",
      "override request", "override answer by lease", "override withdraw"}},
    {Role::admin,
     {"check", "gate", "wait", "lock", "acquire", "renew", "release", "cancel", "transfer", "fenced", "expire",
      "override request", "override answer by lease", "override withdraw", "unlock", "prune", "repair",
      "override answer"}},
};
/// With a grant for any area.
const std::set<std::string> anywhere{"locks", "history", "overrides", "events", "store", "session"};
/// With a grant for everything.
const std::map<Role, std::set<std::string>> on_all{
    {Role::viewer, {"metrics"}}, {Role::holder, {"metrics"}}, {Role::admin, {"metrics", "examine"}}};

TEST(EveryCell, OfRoleAndEndpointAndAreaIsAsWrittenHere) {
    for (const EndpointRow& row : endpoint_table()) {
        const std::string name(row.name);
        for (const auto& [role, allowed] : on_locks) {
            const std::string what = fmt::format("{} as {}", name, name_of(role));
            const bool on_lock = allowed.contains(name);
            const Identity team = caller({{role, "team"}});
            const Identity all = caller({{role, ""}});
            if (row.scope == Scope::lock) {
                EXPECT_EQ(may(team, row.endpoint, lock("team/a")), on_lock) << what;
                EXPECT_EQ(may(all, row.endpoint, lock("team/a")), on_lock) << what;
                EXPECT_FALSE(may(team, row.endpoint, lock("teams"))) << what;
                EXPECT_FALSE(may(team, row.endpoint, lock("other"))) << what;
                EXPECT_EQ(may(team, row.endpoint), on_lock) << what;
            } else {
                EXPECT_FALSE(on_lock) << what;
                EXPECT_EQ(may(team, row.endpoint), anywhere.contains(name)) << what;
                EXPECT_EQ(may(all, row.endpoint), anywhere.contains(name) || on_all.at(role).contains(name)) << what;
            }
            EXPECT_FALSE(may(caller({}), row.endpoint)) << name << " without a grant";
            EXPECT_FALSE(may(caller({}), row.endpoint, lock("a"))) << name << " without a grant";
        }
    }
}

TEST(EndpointTable, HasEachEndpointAtItsPlace) {
    std::size_t place = 0;
    for (const EndpointRow& row : endpoint_table()) EXPECT_EQ(static_cast<std::size_t>(row.endpoint), place++);
    EXPECT_EQ(place, static_cast<std::size_t>(Endpoint::session) + 1);
}

TEST(OfAllLocks, ACallerMayReadThoseOfItsAreas) {
    const Identity team = caller({{Role::viewer, "team"}, {Role::admin, "ops/"}});
    for (const Endpoint each : {Endpoint::locks, Endpoint::history, Endpoint::overrides, Endpoint::events}) {
        EXPECT_TRUE(may(team, each, lock("team/a")));
        EXPECT_TRUE(may(team, each, lock("ops/a")));
        EXPECT_FALSE(may(team, each, lock("teams")));
    }
}

TEST(SeveralGrants, DoNotSpreadTheirRolesOverEachOther) {
    const Identity both = caller({{Role::admin, "a"}, {Role::viewer, ""}});
    EXPECT_TRUE(may(both, Endpoint::unlock, lock("a/b")));
    EXPECT_TRUE(may(both, Endpoint::lock, lock("b")));
    EXPECT_FALSE(may(both, Endpoint::unlock, lock("b")));
    EXPECT_FALSE(may(both, Endpoint::examine)) << "an admin of a part is no admin of the store";
}

TEST(AnOpenDaemon, RefusesNothing) {
    for (const EndpointRow& row : endpoint_table()) EXPECT_TRUE(may(Identity::open("127.0.0.1"), row.endpoint));
}

const Credentials as = Credentials::random();

TEST(EveryRequest, NeedsTheRoleOfItsEndpoint) {
    const LockName name = lock("team/a");
    const std::map<Endpoint, Request> requests{
        {Endpoint::acquire, Acquire{.name = name, .as = as, .ttl = some_ttl()}},
        {Endpoint::renew, Renew{name, as, some_ttl()}},
        {Endpoint::release, Release{name, as}},
        {Endpoint::cancel, Cancel{name, as}},
        {Endpoint::transfer, Transfer{.name = name, .as = as, .to_as = as}},
        {Endpoint::check, Check{.name = name}},
        {Endpoint::fenced, ReportFenced{.name = name}},
        {Endpoint::unlock, Break{.name = name}},
        {Endpoint::expire, Expire{name}},
        {Endpoint::prune, Prune{.name = name}},
        {Endpoint::repair, Repair{name}},
        {Endpoint::override_request, Ask{.name = name, .as = as, .ttl = some_ttl(), .valid_for = some_ttl()}},
        {Endpoint::override_answer_by_lease, Answer{.name = name, .by = as}},
        {Endpoint::override_answer, Answer{.name = name}},
    };
    EXPECT_EQ(requests.size(), std::variant_size_v<Request> + 1) << "an answer has two";
    for (const auto& [endpoint, request] : requests) {
        EXPECT_EQ(endpoint_of(request), endpoint);
        for (const Role role : {Role::viewer, Role::holder, Role::admin}) {
            const auto allowed = permitted(caller({{role, "team"}}), request);
            EXPECT_EQ(allowed.has_value(), role >= row_of(endpoint).needs) << row_of(endpoint).name;
            EXPECT_EQ(allowed ? Errc::denied : allowed.error().code, Errc::denied);
            EXPECT_FALSE(permitted(caller({{role, "other"}}), request)) << row_of(endpoint).name;
        }
    }
}

TEST(ARefusal, TellsNothingOfALockThatTheCallerMayNotSee) {
    const Identity team = caller({{Role::holder, "team"}});
    const Request acquire =
        Acquire{.name = lock("team/a"), .as = as, .ttl = some_ttl(), .unless_held = {lock("other/secret")}};
    EXPECT_FALSE(permitted(team, acquire)) << "the reply would name the holder of another team's lock";
    const Request check = Check{.name = lock("team/a"), .unless_held = {lock("other/secret")}};
    EXPECT_FALSE(permitted(team, check));
    const Identity both = caller({{Role::holder, "team"}, {Role::viewer, "other"}});
    EXPECT_TRUE(permitted(both, acquire));
    EXPECT_THAT(permitted(team, acquire).error().message, testing::Not(HasSubstr("secret")));
}

Override question_of(const std::string& user) { return {.asker = {"job", user}}; }

TEST(AQuestion, IsAnsweredByAnAdminOfItsAreaOnly) {
    Answer yes{.name = lock("team/a"), .verdict = Verdict::approve};
    EXPECT_TRUE(permitted_answer(caller({{Role::admin, "team"}}), question_of("bob"), yes));
    EXPECT_FALSE(yes.breaks_glass);
    EXPECT_FALSE(permitted_answer(caller({{Role::admin, "other"}}), question_of("bob"), yes));
    EXPECT_FALSE(permitted_answer(caller({{Role::holder, ""}}), question_of("bob"), yes));
}

TEST(AnAdmin, ApprovesTheirOwnQuestionOnlyWithAReasonAndThatIsMarked) {
    const Identity admin = caller({{Role::admin, ""}});
    Answer yes{.name = lock("a"), .verdict = Verdict::approve};
    const auto refused = permitted_answer(admin, question_of("alice"), yes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::usage);
    yes.reason = "the holder is asleep and production is down";
    EXPECT_TRUE(permitted_answer(admin, question_of("alice"), yes));
    EXPECT_TRUE(yes.breaks_glass);
}

TEST(AHolder, WithdrawsTheirOwnQuestionAndApprovesNone) {
    const Identity holder = caller({{Role::holder, "team"}});
    Answer no{.name = lock("team/a"), .verdict = Verdict::deny};
    EXPECT_TRUE(permitted_answer(holder, question_of("alice"), no));
    EXPECT_FALSE(permitted_answer(holder, question_of("bob"), no));
    Answer yes{.name = lock("team/a"), .verdict = Verdict::approve, .reason = "please"};
    EXPECT_FALSE(permitted_answer(holder, question_of("alice"), yes));
    EXPECT_FALSE(permitted_answer(caller({{Role::holder, ""}}, ""), question_of(""), no))
        << "two that nobody knows are not the same";
}

TEST(AKnownCaller, CannotActUnderAnotherName) {
    const Identity alice = caller({{Role::admin, ""}});
    Request acquire = Acquire{.name = lock("a"), .as = as, .holder = {"ci-7", "mallory"}, .ttl = some_ttl()};
    sign(alice, acquire);
    EXPECT_EQ(std::get<Acquire>(acquire).holder, (Holder{"ci-7", "alice"}));
    Request ask = Ask{.name = lock("a"), .as = as, .holder = {"", "bob"}, .ttl = some_ttl(), .valid_for = some_ttl()};
    sign(alice, ask);
    EXPECT_EQ(std::get<Ask>(ask).holder, (Holder{"alice from 10.0.0.7", "alice"}));
    Request unlock = Break{.name = lock("a"), .actor = "bob"};
    sign(alice, unlock);
    EXPECT_EQ(std::get<Break>(unlock).actor, "alice from 10.0.0.7: bob");
    Request answer = Answer{.name = lock("a")};
    sign(alice, answer);
    EXPECT_EQ(std::get<Answer>(answer).actor, "alice from 10.0.0.7");
}

TEST(AnActor, FitsIntoTheStoreHoweverLongTheTextsAre) {
    for (const std::size_t length : {0U, 10U, 200U}) {
        Request unlock = Break{.name = lock("a"), .actor = std::string(5000, 'x')};
        sign(caller({{Role::admin, ""}}, std::string(length, 'u')), unlock);
        EXPECT_LE(std::get<Break>(unlock).actor.size(), 255U);
    }
}

TEST(AnOpenDaemon, BelievesWhatIsSaid) {
    Request acquire = Acquire{.name = lock("a"), .as = as, .holder = {"ci-7", "bob"}, .ttl = some_ttl()};
    sign(Identity::open("127.0.0.1"), acquire);
    EXPECT_EQ(std::get<Acquire>(acquire).holder, (Holder{"ci-7", "bob"}));
    Request nameless = Acquire{.name = lock("a"), .as = as, .ttl = some_ttl()};
    sign(Identity::open("127.0.0.1"), nameless);
    EXPECT_EQ(std::get<Acquire>(nameless).holder, (Holder{"127.0.0.1", ""}));
}

}  // namespace
}  // namespace holdfast::access
