// Goal: what a server says, and what a URL says, is understood rightly: every code, every setting, every finding.
// Method: the parts that judge, given what no healthy server says. No server.
#include "stores/postgres/config.hpp"
#include "stores/postgres/grade.hpp"
#include "stores/postgres/session.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/variable.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using namespace stores::postgres;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

Error error_for(const std::string& sqlstate, const std::string& message = "said so") {
    return error_of(Fault{.sqlstate = sqlstate, .message = message}, "use the locks");
}

TEST(PostgresErrors, AreWhatTheCodeSaysWhateverTheLanguage) {
    EXPECT_EQ(error_for("42501").code, Errc::denied);
    // Broken rules of the schema; a table or column that is missing; a schema that is; damaged pages and indexes.
    for (const char* broken : {"23514", "23505", "23000", "42P01", "42703", "3F000", "XX000", "XX001", "XX002"}) {
        EXPECT_EQ(error_for(broken).code, Errc::record_corrupt) << broken;
        EXPECT_THAT(error_for(broken).message, AllOf(HasSubstr("blocked"), Not(HasSubstr("nothing was changed"))));
    }
    for (const char* passing :
         {"55P03", "57014", "53100", "53200", "53300", "25006", "57P01", "57P03", "58030", "40001", "08006", ""}) {
        EXPECT_EQ(error_for(passing).code, Errc::store_unavailable) << passing;
        EXPECT_THAT(error_for(passing).message, HasSubstr("nothing was changed")) << passing;
    }
}

TEST(PostgresErrors, AreNamedInWordsWhereTheServersAreInItsOwnLanguage) {
    const std::vector<std::pair<std::string, std::string>> conditions{
        {"53100", "disk is full"},  {"53200", "out of memory"},      {"53300", "too many connections"},
        {"25006", "read-only"},     {"57P03", "starting or ending"}, {"58030", "cannot use its disk"},
        {"55P03", "holds its row"}, {"57014", "holds its row"}};
    for (const auto& [code, words] : conditions)
        EXPECT_THAT(error_for(code, "plus de place").message, HasSubstr(words)) << code;
    for (const char* code : {"53100", "42501", "XX001", "08006"})
        EXPECT_THAT(error_for(code, "plus de place").message, AllOf(HasSubstr("plus de place"), HasSubstr(code)));
}

TEST(PostgresErrors, OnlyALostSessionIsSilentAndOnlyAnotherOneIsAStranger) {
    EXPECT_TRUE(Fault{}.silent());
    EXPECT_FALSE(Fault{.sqlstate = "57P01"}.silent());
    EXPECT_TRUE(Fault{.sqlstate = "26000"}.session_was_replaced()) << "it does not know the statement";
    EXPECT_TRUE(Fault{.sqlstate = "42P05"}.session_was_replaced()) << "it knows it already";
    EXPECT_FALSE(Fault{.sqlstate = "42P01"}.session_was_replaced());
}

TEST(PostgresSessionKey, BelongsToOneLockOfOneSchema) {
    const Settings first{{"", {}}, "a"};
    const Settings second{{"", {}}, "b"};
    EXPECT_EQ(session_key(first, lock("x")), session_key(first, lock("x"))) << "every process finds the same";
    EXPECT_NE(session_key(first, lock("x")), session_key(first, lock("y")));
    EXPECT_NE(session_key(first, lock("x")), session_key(second, lock("x")));
    const Settings longer{{"", {}}, "ab"};
    EXPECT_NE(session_key(longer, lock("c")), session_key(first, lock("bc"))) << "where one ends, the other begins";
}

/// A server that keeps everything.
Facts sound(const Clock& clock) {
    return {.version = "15.1",
            .fsync = true,
            .full_page_writes = true,
            .synchronous_commit = "on",
            .synchronous_standbys = {},
            .standbys = 0,
            .in_recovery = false,
            .pooled = false,
            .now = clock.wall()};
}

auto is(bool ok, const std::string& name, const std::string& words) {
    return AllOf(Field(&Finding::name, name), Field(&Finding::ok, ok), Field(&Finding::detail, HasSubstr(words)));
}

/// `change` makes one thing of a sound server otherwise: `finding` says so, and all the others are content.
void expect_only(const std::function<void(Facts&)>& change, bool ok, const std::string& finding,
                 const std::string& words) {
    const ManualClock clock;
    Facts facts = sound(clock);
    change(facts);
    const auto findings = findings_of(facts, clock);
    EXPECT_THAT(findings, Contains(is(ok, finding, words)));
    for (const Finding& one : findings) EXPECT_TRUE(one.ok || one.name == finding) << one.name;
}

TEST(PostgresFindings, NameWhatIsWrongAndNothingElse) {
    expect_only([](Facts&) {}, true, "version", "15.1");
    expect_only([](Facts& facts) { facts.fsync = false; }, false, "fsync", "off: a crash");
    expect_only([](Facts&) {}, true, "fsync", "on");
    expect_only([](Facts& facts) { facts.full_page_writes = false; }, false, "full_page_writes", "off: a power cut");
    expect_only([](Facts&) {}, true, "full_page_writes", "on");
    expect_only([](Facts& facts) { facts.standbys = 2; }, false, "replication", "2 standby(s), none");
    expect_only([](Facts&) {}, true, "replication", "no standby");
    expect_only(
        [](Facts& facts) {
            facts.standbys = 2;
            facts.synchronous_standbys = "ANY 1 (*)";
        },
        true, "replication", "synchronous: ANY 1 (*)");
    expect_only([](Facts& facts) { facts.in_recovery = true; }, false, "recovery", "a standby");
    expect_only([](Facts&) {}, true, "recovery", "takes writes");
    expect_only([](Facts& facts) { facts.pooled = true; }, true, "pooler", "behind a connection pooler");
    expect_only([](Facts&) {}, true, "pooler", "a direct connection");
    for (const std::string level : {"on", "remote_apply"})
        expect_only([&](Facts& facts) { facts.synchronous_commit = level; }, true, "synchronous_commit", level);
    for (const std::string level : {"off", "local", "remote_write"})
        expect_only([&](Facts& facts) { facts.synchronous_commit = level; }, true, "synchronous_commit",
                    level + " for this role; changes of locks use on");
}

TEST(PostgresFindings, SayHowFarTheServersClockIsAndOnWhichSide) {
    expect_only([](Facts& facts) { facts.now += 61s; }, false, "clock", "ahead of this host");
    expect_only([](Facts& facts) { facts.now -= 61s; }, false, "clock", "behind this host");
    expect_only([](Facts& facts) { facts.now += 60s; }, true, "clock", "ahead of this host");
    expect_only([](Facts& facts) { facts.now -= 60s; }, true, "clock", "behind this host");
}

TEST(PostgresGrading, IsTheWorstOfWhatTheServerPromises) {
    const ManualClock clock;
    const auto grading = [&](const std::function<void(Facts&)>& change) {
        Facts facts = sound(clock);
        change(facts);
        return grading_of(facts);
    };
    EXPECT_EQ(grading([](Facts&) {}).grade, Grade::a);
    EXPECT_THAT(grading([](Facts&) {}).reasons, Contains(HasSubstr("no standby")));
    EXPECT_EQ(grading([](Facts& facts) { facts.full_page_writes = false; }).grade, Grade::b);
    const base::Grading both = grading([](Facts& facts) {
        facts.full_page_writes = false;
        facts.standbys = 1;
    });
    EXPECT_EQ(both.grade, Grade::b);
    EXPECT_THAT(both.reasons, AllOf(Contains(HasSubstr("power cut")), Contains(HasSubstr("failover"))));
    const base::Grading lossy = grading([](Facts& facts) {
        facts.fsync = false;
        facts.full_page_writes = false;
    });
    EXPECT_EQ(lossy.grade, Grade::c);
    EXPECT_THAT(lossy.reasons, Contains(HasSubstr("fsync is off")));
    const base::Grading followed = grading([](Facts& facts) {
        facts.standbys = 1;
        facts.synchronous_standbys = "one";
    });
    EXPECT_EQ(followed.grade, Grade::a);
    EXPECT_THAT(followed.reasons, Contains(HasSubstr("synchronous: one")));
}

Result<Settings> settings_for(const std::string& url) { return settings_of(must(base::Url::parse(url))); }

TEST(PostgresSettings, TheSchemaIsAPlainNameThatIsNotTheServersOwn) {
    for (const std::string& good : std::vector<std::string>{"a", "_a", "a_1", "pga", "p", std::string(63, 'a')})
        EXPECT_EQ(must(settings_for("postgres://h/d?schema=" + good)).quoted_schema(), '"' + good + '"');
    for (const std::string bad : {"", "1a", "A", "a-b", "a.b", "a%22", "a%0A", "pg_", "pg_catalog", "%C3%A4"})
        EXPECT_THAT(settings_for("postgres://h/d?schema=" + bad), RefusedWith(Errc::usage)) << bad;
    EXPECT_THAT(settings_for("postgres://h/d?schema=" + std::string(64, 'a')), RefusedWith(Errc::usage))
        << "the server would cut it off, and two stores would be one";
    EXPECT_EQ(must(settings_for("postgres://h/d")).schema, "holdfast");
}

TEST(PostgresSettings, WhatCannotBeReadIsRefusedAndNotRepeated) {
    const std::vector<std::string> bad{"postgres://u:se/cret@h/d",      "postgres://u:secret@h:12x/d",
                                       "postgres://u:secret@h:cret/d",  "postgres://u@h/d?port=secret",
                                       "postgres://u@h/d?port=123456",  "postgres://h/d?secret=1",
                                       "postgres://h/d?session=secret", "postgres://u:secret@[h/d"};
    for (const std::string& url : bad) {
        const auto settings = settings_for(url);
        ASSERT_THAT(settings, RefusedWith(Errc::usage)) << url;
        if (url.find("?secret") == std::string::npos) {
            EXPECT_THAT(settings.error().message, Not(HasSubstr("cret"))) << url;
        }
    }
}

TEST(PostgresSettings, TheUsersChoiceCountsBeforeTheEnvironmentsAndThatBeforeOurs) {
    const auto option = [](const std::string& url, const std::string& name) {
        const auto settings = must(settings_for(url));
        const auto found = settings.options.find(name);
        return found == settings.options.end() ? "as libpq likes" : found->second;
    };
    EXPECT_EQ(option("postgres://h/d", "target_session_attrs"), "read-write");
    EXPECT_EQ(option("postgres://h/d", "application_name"), "holdfast");
    for (const char* name : {"keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"})
        EXPECT_NE(option("postgres://h/d", name), "as libpq likes") << "a peer that is gone is noticed: " << name;
    EXPECT_EQ(option("postgres://h/d?application_name=mine", "application_name"), "mine");
    {
        const Variable ours("PGAPPNAME", "theirs");
        const Variable any("PGTARGETSESSIONATTRS", "any");
        EXPECT_EQ(option("postgres://h/d", "application_name"), "as libpq likes") << "which asks the environment";
        EXPECT_EQ(option("postgres://h/d", "target_session_attrs"), "as libpq likes");
        EXPECT_EQ(option("postgres://h/d?application_name=mine", "application_name"), "mine");
    }
    const Variable encoding("PGCLIENTENCODING", "LATIN1");
    EXPECT_EQ(option("postgres://h/d", "client_encoding"), "UTF8") << "what is bound is UTF-8";
    EXPECT_EQ(option("postgres://h/d?client_encoding=LATIN1", "client_encoding"), "UTF8");
}

TEST(PostgresSettings, EveryHostIsCounted) {
    EXPECT_EQ(must(settings_for("postgres:///d")).hosts(), 1U);
    EXPECT_EQ(must(settings_for("postgres://a/d")).hosts(), 1U);
    EXPECT_EQ(must(settings_for("postgres://a,b:1,c/d")).hosts(), 3U);
    EXPECT_FALSE(must(settings_for("postgres://a/d")).session);
    EXPECT_TRUE(must(settings_for("postgres://a/d?session=on")).session);
}

}  // namespace
}  // namespace holdfast::tests
