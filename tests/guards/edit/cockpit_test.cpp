// Goal: what the sample's server promises to its pages holds over HTTP, whatever a page sends. Method: the real daemon
// and the real server, started by the script that users start, and requests as any HTTP client sends them.
#include "guards/edit/sample.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using cli_test::Document;
using server_test::Answer;
using server_test::Client;
using testing::HasSubstr;

class Cockpit : public testing::Test {
protected:
    static void SetUpTestSuite() { sample = new Sample; }
    static void TearDownTestSuite() {
        EXPECT_EQ(sample->end().status, 0);
        delete sample;
    }
    /// Nobody edits, and no propagation runs.
    void TearDown() override {
        for (const std::string lock : {"project/apollo/edit", "project/apollo/propagation"}) {
            const auto end = std::chrono::steady_clock::now() + patience;
            while (std::chrono::steady_clock::now() < end) {
                const Document held = olga.get("/v1/lock?name=" + lock).json();
                if (held.text("/state") == "free") break;
                if (lock.ends_with("edit"))
                    (void)olga.call("POST", "/v1/unlock",
                                    fmt::format(R"({{"name":"{}","lock_id":"{}","reason":"end of test"}})", lock,
                                                held.text("/lock_id")));
                std::this_thread::sleep_for(5ms);
            }
        }
    }

    struct Lease {
        std::string lease, lock_id, token, renew_seq;
    };
    static Lease lease_in(const Answer& answer) {
        const Document grant = answer.json();
        return {grant.text("/lease"), grant.text("/lock_id"), grant.text("/token"), grant.text("/renew_seq")};
    }
    static Answer acquire(const Browser& browser, const std::string& screen, const std::string& more = "") {
        return browser.call("POST", "/v1/acquire",
                            fmt::format(R"({{"name":"project/apollo/edit","holder":"{}"{}}})", screen, more));
    }
    static Answer begin_editing(const Browser& browser, const Lease& lease) {
        return browser.call("POST", "/api/projects/apollo/editing",
                            fmt::format(R"({{"dashboard":"architecture","lock_id":"{}"}})", lease.lock_id),
                            {{"Holdfast-Lock", "project/apollo/edit"}, {"Holdfast-Token", lease.token}});
    }
    /// A screen that edits: the lease, and the database sealed for it.
    static Lease edit(const Browser& browser, const std::string& screen = "architecture#1") {
        const Answer granted = acquire(browser, screen);
        EXPECT_EQ(granted.status, 200) << granted.body;
        const Lease lease = lease_in(granted);
        EXPECT_EQ(begin_editing(browser, lease).status, 200);
        return lease;
    }
    static Answer take_over(const Browser& browser, const Lease& seen) {
        return acquire(browser, "architecture#2",
                       fmt::format(R"(,"take_over":{{"lock_id":"{}","renew_seq":{}}})", seen.lock_id, seen.renew_seq));
    }
    static Lease take_over_when_stale(const Browser& browser, const Lease& seen) {
        Answer answer = take_over(browser, seen);
        for (const auto end = std::chrono::steady_clock::now() + patience;
             answer.status == 423 && std::chrono::steady_clock::now() < end; answer = take_over(browser, seen))
            std::this_thread::sleep_for(20ms);
        EXPECT_EQ(answer.status, 200) << answer.body;
        return lease_in(answer);
    }
    static Answer save(const Browser& browser, const Lease& lease, const std::string& text, std::int64_t base) {
        return browser.call(
            "PUT", "/api/projects/apollo/dashboards/architecture",
            fmt::format(R"({{"text":"{}","base_version":{},"lock_id":"{}"}})", text, base, lease.lock_id),
            {{"Holdfast-Lock", "project/apollo/edit"}, {"Holdfast-Token", lease.token}});
    }
    [[nodiscard]] Document dashboard() const { return ana.get("/api/projects/apollo/dashboards/architecture").json(); }
    [[nodiscard]] std::int64_t version() const { return dashboard().number("/version"); }

    static inline Sample* sample = nullptr;
    const Browser ana{sample->port(), "ana"};
    const Browser ben{sample->port(), "ben"};
    const Browser olga{sample->port(), "olga"};
    const Browser vera{sample->port(), "vera"};
};

TEST_F(Cockpit, TheScreenThatEditsSavesAndTheOthersAreToldWhoItIs) {
    const Lease lease = edit(ana);
    const auto before = version();
    EXPECT_EQ(save(ana, lease, "new text", before).status, 200);
    EXPECT_EQ(dashboard().text("/text"), "new text");
    EXPECT_EQ(version(), before + 1);
    const Answer refused = acquire(ben, "roadmap#1");
    EXPECT_EQ(refused.status, 423);
    EXPECT_EQ(refused.json().text("/error/holder/holder"), "architecture#1");
    EXPECT_EQ(refused.json().text("/error/holder/user"), "ana");
}

TEST_F(Cockpit, ASaveWithAStaleTokenIsRefusedAndItsTextIsKeptAsADraftForBoth) {
    const Lease old = edit(ana);
    const auto before = version();
    const Lease next = take_over_when_stale(ben, old);
    EXPECT_EQ(begin_editing(ben, next).status, 200);
    const Answer late = save(ana, old, "late text of ana", before);
    EXPECT_EQ(late.status, 412) << late.body;
    EXPECT_EQ(late.json().text("/draft/text"), "late text of ana");
    EXPECT_EQ(version(), before);
    for (const Browser* each : {&ana, &ben}) {
        const Document drafts = each->get("/api/projects/apollo/dashboards/architecture/drafts").json();
        EXPECT_EQ(drafts.text("/drafts/0/text"), "late text of ana");
        EXPECT_EQ(drafts.text("/drafts/0/user"), "ana");
    }
    EXPECT_EQ(save(ben, next, "text of ben", before).status, 200);
    EXPECT_EQ(dashboard().text("/text"), "text of ben");
}

TEST_F(Cockpit, APropagationShowsItsProgressAndEndsTheLock) {
    const Lease lease = edit(ana);
    const auto before = version();
    const Answer started =
        ana.call("POST", "/api/projects/apollo/propagation", R"({"dashboard":"roadmap","steps":3,"step_ms":50})");
    ASSERT_EQ(started.status, 202) << started.body;
    std::vector<std::int64_t> seen;
    const auto end = std::chrono::steady_clock::now() + patience;
    Document progress = ana.get("/api/projects/apollo/propagation").json();
    while (progress.text("/state") == "running" && std::chrono::steady_clock::now() < end) {
        seen.push_back(progress.number("/progress"));
        progress = ana.get("/api/projects/apollo/propagation").json();
    }
    EXPECT_EQ(progress.text("/state"), "done");
    EXPECT_EQ(progress.text("/job"), started.json().text("/job"));
    EXPECT_EQ(progress.text("/by"), "ana");
    EXPECT_EQ(progress.number("/progress"), 100);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    EXPECT_EQ(version(), before + 3);
    EXPECT_EQ(save(ana, lease, "after", before).status, 409) << "the propagation changed the text";
    EXPECT_EQ(save(ana, lease, "after", before + 3).status, 200);
}

TEST_F(Cockpit, APropagationFromAnotherSourceBlocksSavesEditingAndASecondOne) {
    const Lease lease = edit(ana);
    const auto before = version();
    const Answer taken = ben.call("POST", "/v1/acquire", R"({"name":"project/apollo/propagation","holder":"by hand"})");
    ASSERT_EQ(taken.status, 200) << taken.body;
    EXPECT_EQ(ana.get("/api/projects/apollo/propagation").json().text("/state"), "elsewhere");
    const Answer refused = save(ana, lease, "between", before);
    EXPECT_EQ(refused.status, 423) << refused.body;
    EXPECT_EQ(refused.json().text("/error/holder/name"), "project/apollo/propagation");
    EXPECT_EQ(refused.json().text("/draft/text"), "between");
    EXPECT_EQ(ana.call("POST", "/api/projects/apollo/propagation", R"({"dashboard":"roadmap"})").status, 423);
    const auto release = [](const Browser& browser, const std::string& name, const Lease& held) {
        return browser
            .call("POST", "/v1/release",
                  fmt::format(R"({{"name":"project/apollo/{}","lease":"{}"}})", name, held.lease))
            .status;
    };
    EXPECT_EQ(release(ana, "edit", lease), 200);
    EXPECT_EQ(acquire(ben, "architecture#1").status, 423) << "nobody begins to edit";
    EXPECT_EQ(release(ben, "propagation", lease_in(taken)), 200);
    EXPECT_EQ(save(ben, edit(ben), "after", before).status, 200);
}

TEST_F(Cockpit, ASwitchKeepsTheProjectLockedAndTheFormerScreenOut) {
    const Lease first = edit(ana);
    const auto before = version();
    const std::string next = "3f2b1c9e-0000-4000-8000-00000000000a.000102030405060708090a0b0c0d0e0f";
    const Answer moved = ana.call(
        "POST", "/v1/transfer",
        fmt::format(
            R"({{"name":"project/apollo/edit","lease":"{}","to":"architecture#2","to_lease":"{}","user":"ana"}})",
            first.lease, next));
    ASSERT_EQ(moved.status, 200) << moved.body;
    EXPECT_EQ(acquire(ben, "roadmap#1").status, 423);
    Lease second = lease_in(moved);
    EXPECT_EQ(begin_editing(ana, second).status, 200);
    EXPECT_EQ(save(ana, first, "of the former screen", before).status, 412);
    EXPECT_EQ(save(ana, second, "of the new screen", before).status, 200);
}

TEST_F(Cockpit, ATakeOverAndARenewalThatMeetAreNotBothGranted) {
    std::mt19937 random(7);
    for (int round = 0; round < 5; ++round) {
        SCOPED_TRACE(round);
        TearDown();
        const Lease lease = edit(ana);
        const std::string renewal = fmt::format(R"({{"name":"project/apollo/edit","lease":"{}"}})", lease.lease);
        // Both are sent at about the moment at which the lease is stale.
        const Answer early = take_over(ben, lease);
        if (early.status == 200) continue;  // This machine is slow.
        const auto stale_in = std::chrono::milliseconds(early.json().number("/error/retry_after_ms"));
        std::this_thread::sleep_for(stale_in + std::chrono::milliseconds(random() % 5));
        Answer renewed;
        std::jthread holder([&] { renewed = ana.call("POST", "/v1/renew", renewal); });
        const Answer taken = take_over(ben, lease);
        holder.join();
        EXPECT_TRUE(taken.status == 200 || taken.status == 423) << taken.body;
        EXPECT_EQ(renewed.status, taken.status == 200 ? 404 : 200) << renewed.body;
        EXPECT_EQ(save(ana, lease, "of ana", version()).status, taken.status == 200 ? 412 : 200);
    }
}

TEST_F(Cockpit, ALeaseOfAnotherUserIsWorthNothing) {
    const Lease lease = edit(ana);
    const auto before = version();
    EXPECT_EQ(begin_editing(ben, lease).status, 403);
    EXPECT_EQ(save(ben, lease, "with the public token of ana", before).status, 403);
    Lease made_up = lease;
    made_up.token = "9007199254740990";
    EXPECT_EQ(begin_editing(ana, made_up).status, 412);
    EXPECT_EQ(save(ana, lease, "mine", before).status, 200) << "a made-up token has sealed nothing";
}

TEST_F(Cockpit, WhoOnlyLooksIsDeniedEverythingElse) {
    EXPECT_EQ(acquire(vera, "architecture#9").status, 403);
    EXPECT_EQ(vera.get("/v1/lock?name=project/apollo/edit").status, 200);
    EXPECT_EQ(vera.call("POST", "/api/projects/apollo/propagation", R"({"dashboard":"roadmap"})").status, 403);
    EXPECT_EQ(vera.call("PUT", "/api/projects/apollo/dashboards/roadmap/draft", R"({"text":"x"})").status, 403);
    const Lease lease = edit(ana);
    EXPECT_EQ(save(vera, lease, "x", version()).status, 403);
    EXPECT_FALSE(vera.get("/api/session").json().yes("/may_edit"));
}

TEST_F(Cockpit, ADraftIsKeptWithoutALockAndThrownAwayByItsAuthorOnly) {
    const std::string place = "/api/projects/apollo/dashboards/roadmap/";
    const Answer kept = ana.call("PUT", place + "draft", R"({"text":"typed","base_version":1})");
    ASSERT_EQ(kept.status, 200) << kept.body;
    EXPECT_EQ(ana.call("PUT", place + "draft", R"({"text":"typed more","base_version":1})").status, 200);
    const Document drafts = ben.get(place + "drafts").json();
    EXPECT_EQ(drafts.size("/drafts"), 1U);
    EXPECT_EQ(drafts.text("/drafts/0/text"), "typed more");
    EXPECT_FALSE(drafts.yes("/drafts/0/is_mine"));
    const std::string one = place + "drafts/" + drafts.text("/drafts/0/id");
    EXPECT_EQ(ben.call("DELETE", one).status, 404);
    EXPECT_EQ(ana.call("DELETE", one).status, 200);
}

TEST_F(Cockpit, ADraftOfOneTabReplacesNoOtherTabsAndASaveForgetsItsOwnAlone) {
    const std::string place = "/api/projects/apollo/dashboards/architecture/";
    const auto keep = [&](const std::string& tab, const std::string& text) {
        return ana
            .call("PUT", place + "draft", fmt::format(R"({{"text":"{}","base_version":1,"tab":"{}"}})", text, tab))
            .status;
    };
    EXPECT_EQ(keep("left", "of the left tab"), 200);
    EXPECT_EQ(keep("right", "of the right tab"), 200);
    EXPECT_EQ(keep("right", "more of the right tab"), 200);
    const Lease lease = edit(ana);
    const Answer saved = ana.call(
        "PUT", "/api/projects/apollo/dashboards/architecture",
        fmt::format(R"({{"text":"x","base_version":{},"tab":"right","lock_id":"{}"}})", version(), lease.lock_id),
        {{"Holdfast-Lock", "project/apollo/edit"}, {"Holdfast-Token", lease.token}});
    EXPECT_EQ(saved.status, 200) << saved.body;
    std::vector<std::string> typed;
    const Document drafts = ana.get(place + "drafts").json();
    for (std::size_t i = 0; i < drafts.size("/drafts"); ++i) {
        const std::string at = "/drafts/" + std::to_string(i);
        if (drafts.text(at + "/why") == "typed") typed.push_back(drafts.text(at + "/text"));
    }
    EXPECT_THAT(typed, testing::ElementsAre("of the left tab"));
}

TEST_F(Cockpit, ABodyThatCannotBeReadChangesNothing) {
    const std::string place = "/api/projects/apollo/dashboards/techstack/";
    ASSERT_EQ(ana.call("PUT", place + "draft", R"({"text":"typed","tab":"one"})").status, 200);
    for (const std::string body : {R"({"text":"cut off)", R"({"text":"\ud800","tab":"one"})", "[]", "\x80"}) {
        const Answer refused = ana.call("PUT", place + "draft", body);
        EXPECT_EQ(refused.status, 400) << refused.body;
    }
    EXPECT_EQ(ana.get(place + "drafts").json().text("/drafts/0/text"), "typed");
}

TEST_F(Cockpit, ARequestThatIsTooLongIsAnsweredBeforeTheConnectionIsClosed) {
    const Lease lease = edit(ana);
    EXPECT_EQ(save(ana, lease, std::string(300'000, 'x'), version()).status, 400);
    const Answer refused = save(ana, lease, std::string(3'000'000, 'x'), version());
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(refused.json().text("/error/code"), "E_USAGE");
}

TEST_F(Cockpit, APageOfOneUserDoesNothingInTheNameOfTheNextOneInItsBrowser) {
    const Client::Headers of_ana{{"Cockpit-User", "ana"}};
    EXPECT_EQ(ana.call("GET", "/api/projects", "", of_ana).status, 200);
    EXPECT_EQ(ben.call("GET", "/api/projects", "", of_ana).status, 401);
    EXPECT_EQ(ben.call("PUT", "/api/projects/apollo/dashboards/roadmap/draft", R"({"text":"of ana"})", of_ana).status,
              401);
    EXPECT_EQ(ben.call("POST", "/v1/acquire", R"({"name":"project/apollo/edit","holder":"x"})", of_ana).status, 401);
}

TEST_F(Cockpit, TheAuditViewTellsEverySessionAndTheActiveOnesAlone) {
    const Lease lease = edit(ana);
    const Document active = ben.get("/api/audit?project=apollo&active=1").json();
    EXPECT_EQ(active.size("/entries"), 1U);
    EXPECT_EQ(active.text("/entries/0/dashboard"), "architecture");
    EXPECT_EQ(active.text("/entries/0/user"), "ana");
    EXPECT_EQ(active.text("/entries/0/type"), "project");
    EXPECT_EQ(active.text("/entries/0/lock_id"), lease.lock_id);
    EXPECT_FALSE(active.has("/entries/0/released_at"));
    EXPECT_EQ(
        ana.call("POST", "/v1/release", fmt::format(R"({{"name":"project/apollo/edit","lease":"{}"}})", lease.lease))
            .status,
        200);
    EXPECT_EQ(ben.get("/api/audit?project=apollo&active=1").json().size("/entries"), 0U);
    EXPECT_EQ(ben.get("/api/audit?project=apollo").json().text("/entries/0/ended_by"), "released");
}

TEST_F(Cockpit, PagesOfOtherOriginsAndStrangersReachNothing) {
    EXPECT_EQ(ana.call("POST", "/v1/acquire", "{}", {{"Origin", "http://evil.example"}}).status, 403);
    EXPECT_EQ(ana.call("GET", "/api/projects", "", {{"Sec-Fetch-Site", "cross-site"}}).status, 403);
    EXPECT_EQ(ana.call("GET", "/api/projects", "", {{"Host", "evil.example"}}).status, 403);
    const auto stranger = [&](const std::string& target) {
        return Client(sample->port())
            .call("GET", target, "", {{"Host", "127.0.0.1:" + std::to_string(sample->port())}});
    };
    EXPECT_EQ(stranger("/v1/locks").status, 401);
    EXPECT_EQ(stranger("/api/projects").status, 401);
    EXPECT_EQ(stranger("/p/apollo/roadmap").status, 200) << "the page itself, which asks to sign in";
    EXPECT_THAT(stranger("/").headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
    for (const std::string target : {"/../secret.js", "/..%2fsecret.js", "/%2e%2e/secret.js", "/index.html/../../x.js"})
        EXPECT_EQ(stranger(target).status, 404) << target;
    EXPECT_EQ(ana.get("/api/projects/../projects").status, 404);
}

TEST_F(Cockpit, EventsComeThroughTheProxyAsTheyHappen) {
    Client stream(sample->port());
    const Answer signed_in = stream.call("POST", "/api/session", R"({"user":"ben"})",
                                         {{"Host", "127.0.0.1:" + std::to_string(sample->port())}});
    const std::string cookie = signed_in.headers.at("set-cookie");
    stream.send_request("GET", "/v1/events?since=end&prefix=project/", "",
                        {{"Host", "127.0.0.1:" + std::to_string(sample->port())},
                         {"Cookie", cookie.substr(0, cookie.find(';'))},
                         {"Accept", "text/event-stream"}});
    EXPECT_EQ(stream.read_head().status, 200);
    std::string text;
    const auto read_until = [&](std::string_view what) {
        for (std::string more = "?"; text.find(what) == std::string::npos && !more.empty(); text += more)
            more = stream.read_chunk();
    };
    read_until("event: ready");
    edit(ana);
    read_until("event: acquired");
    EXPECT_THAT(text, HasSubstr("project/apollo/edit"));
}

TEST(CockpitStart, EndsBothProgramsAndLeavesNoTokenToOthers) {
    Sample own;
    for (const char* const file : {"tokens.json", "tokens/ana.token", "cockpit.db"}) {
        using std::filesystem::perms;
        const auto mode = std::filesystem::status(own.folder() / file).permissions();
        EXPECT_EQ(mode & (perms::group_all | perms::others_all), perms::none) << file;
    }
    pid_t daemon = 0;
    pid_t cockpit = 0;
    std::ifstream(own.folder() / "daemon.pid") >> daemon;
    std::ifstream(own.folder() / "cockpit.pid") >> cockpit;
    ASSERT_GT(daemon, 1);
    ASSERT_GT(cockpit, 1);
    EXPECT_EQ(own.end().status, 0);
    for (const pid_t each : {daemon, cockpit}) {
        EXPECT_EQ(kill(each, 0), -1);
        EXPECT_EQ(errno, ESRCH);
    }
}

}  // namespace
}  // namespace holdfast::tests
