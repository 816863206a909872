// What an error becomes: its hint, its exit status, and the form in which somebody asked for it. Method: tables over
// every code, in this process.
#include "cli/report.hpp"

#include "cli/parse.hpp"
#include "holdfast/lease.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace holdfast::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Settings settings_of(std::vector<std::string> args) {
    args.insert(args.end(), {"--config", "/dev/null"});
    const auto line = parse(args);
    EXPECT_TRUE(line) << line.error().message;
    auto settings = settle(line.value());
    EXPECT_TRUE(settings) << settings.error().message;
    return std::move(settings).value();
}

Error error_of(Errc code, bool with_lock) {
    Error error{code, "text"};
    if (with_lock) {
        LockStatus status{.name = *LockName::parse("my lock")};
        error.holder = std::make_shared<const LockStatus>(std::move(status));
    }
    return error;
}

/// The hint of every code that a command of today can end with; {} stands for the lock and the flags, [] for the flags.
const std::map<Errc, std::string>& hints() {
    static const std::map<Errc, std::string> all{
        {Errc::lock_conflict, "wait for it with --wait 2m, or look: holdfast status {}"},
        {Errc::lock_expired, "stop the work, then take it again: holdfast acquire {}"},
        {Errc::lock_not_held, "see who holds it and what happened: holdfast history {}"},
        {Errc::fencing_mismatch, "stop: a newer holder is at work; see holdfast history {}"},
        {Errc::outcome_unknown, "look before you repeat it: holdfast status {}"},
        {Errc::store_unavailable, "nothing was changed; try again, or find out more with: holdfast doctor[]"},
        {Errc::name_invalid,
         "a name is 1 to 255 bytes of UTF-8 without control characters, and without . or .. between slashes; such as "
         "migrate/prod"},
        {Errc::usage, "see holdfast help"},
        {Errc::denied, "check who owns the store and the lock: holdfast doctor[]"},
        {Errc::config, "correct it, or name another file with --config"},
        {Errc::store_unsafe, "see what is wrong with it: holdfast doctor[], or name another with --store"},
        {Errc::format_unsupported, "see what is wrong with it: holdfast doctor[], or name another with --store"},
        {Errc::audit_chain_broken, "keep a copy of the store before anything else, then find out who changed it"},
        {Errc::record_corrupt,
         "keep a copy of the store before anything else, then find out who changed it; this makes the lock usable "
         "again: holdfast repair {}"},
    };
    return all;
}

std::string filled_in(std::string hint, const std::string& lock, const std::string& flags) {
    for (const auto& [place, text] : {std::pair<std::string, std::string>{"{}", lock}, {"[]", flags}})
        if (const auto at = hint.find(place); at != std::string::npos) hint.replace(at, place.size(), text);
    return hint;
}

TEST(Hint, OfEveryCodeNamesTheLockAndTheFlagsOfTheCommandLine) {
    const std::string flags = " -s 'sqlite:my db' --config /dev/null";
    const Settings settings = settings_of({"status", "-s", "sqlite:my db"});
    for (const auto& [code, hint] : hints()) {
        const std::string_view name = row_of(code).name;
        EXPECT_EQ(hint_for(error_of(code, true), &settings), filled_in(hint, "'my lock'" + flags, flags)) << name;
        EXPECT_EQ(hint_for(error_of(code, true)), filled_in(hint, "'my lock'", "")) << name;
        EXPECT_EQ(hint_for(error_of(code, false)), filled_in(hint, "NAME", "")) << name;
    }
    for (const ErrorRow& row : error_table()) {
        EXPECT_NE(hint_for(error_of(row.code, false)), "") << row.name;
        Error error = error_of(row.code, true);
        error.hint = "its own";
        EXPECT_EQ(hint_for(error, &settings), "its own") << row.name;
    }
}

TEST(Hint, ANameThatWouldBeAFlagStandsBehindTwoDashes) {
    Error error{Errc::lock_conflict, "text"};
    LockStatus status{.name = *LockName::parse("--yes")};
    error.holder = std::make_shared<const LockStatus>(std::move(status));
    const Settings settings = settings_of({"status", "-s", "sqlite:x"});
    EXPECT_THAT(hint_for(error, &settings),
                testing::EndsWith("holdfast status -s sqlite:x --config /dev/null -- --yes"));
    EXPECT_THAT(hint_for(error), testing::EndsWith("holdfast status -- --yes"));
}

TEST(Hint, NamesEachOfSeveralStoresInACommandOfItsOwn) {
    const Settings settings = settings_of({"status", "-s", "sqlite:x", "-s", "sqlite:y"});
    EXPECT_THAT(hint_for(error_of(Errc::lock_conflict, true), &settings),
                testing::EndsWith("look: holdfast status 'my lock' -s sqlite:x --config /dev/null; "
                                  "holdfast status 'my lock' -s sqlite:y --config /dev/null"));
    EXPECT_THAT(hint_for(error_of(Errc::store_unavailable, true), &settings),
                testing::EndsWith("holdfast doctor -s sqlite:x --config /dev/null; "
                                  "holdfast doctor -s sqlite:y --config /dev/null"));
}

TEST(Hint, RepeatsNoFlagThatMayShowASecret) {
    for (const char* url : {"postgres://u:hunter2@h/db", "redis://h/?password=hunter2"}) {
        const Settings settings = settings_of({"status", "-s", "sqlite:x", "-s", url});
        for (const ErrorRow& row : error_table())
            EXPECT_THAT(hint_for(error_of(row.code, true), &settings), Not(HasSubstr("hunter2"))) << row.name;
    }
}

TEST(ExitStatus, OfAConflictCanBeChosenAndOfNothingElse) {
    const Settings usual = settings_of({"acquire", "a"});
    const Settings chosen = settings_of({"acquire", "a", "-E", "9"});
    const Settings skipped = settings_of({"acquire", "a", "--if-held", "skip", "-E", "9"});
    for (const ErrorRow& row : error_table()) {
        const bool is_conflict = row.code == Errc::lock_conflict;
        const Error error = error_of(row.code, false);
        EXPECT_EQ(exit_status(error, usual), row.exit_status) << row.name;
        EXPECT_EQ(exit_status(error, chosen), is_conflict ? 9 : row.exit_status) << row.name;
        EXPECT_EQ(exit_status(error, skipped), is_conflict ? 0 : row.exit_status) << row.name;
    }
    EXPECT_EQ(exit_status(error_of(Errc::lock_conflict, false), settings_of({"acquire", "a", "-E", "0"})), 0);
    EXPECT_EQ(exit_status(error_of(Errc::lock_conflict, false), settings_of({"acquire", "a", "-E", "255"})), 255);
}

/// Before a command line is understood, it must be known what its reader expects.
struct Asked {
    std::vector<std::string> args;
    bool json = false;
    bool shell = false;
    std::string json_variable{};
    std::string format_variable{};
};

TEST(EarlyErrors, AreToldInTheFormThatWasAskedFor) {
    const std::vector<Asked> table{
        {{"acquire", "a"}},
        {{"acquire", "a", "--json"}, true},
        {{"--json", "acquire"}, true},
        {{"acquire", "a", "--json=on"}, true},
        {{"acquire", "a", "--json=yes"}, true},
        {{"acquire", "a", "--json=true"}, true},
        {{"acquire", "a", "--json=1"}, true},
        {{"acquire", "a", "--json=off"}},
        {{"acquire", "a", "--json", "--json=off"}},
        {{"acquire", "a", "--json=off", "--json"}, true},
        {{"run", "a", "--", "x", "--json"}},
        {{"run", "a", "--", "x", "--json=on"}},
        {{"acquire", "a"}, true, false, "on"},
        {{"acquire", "a"}, true, false, "true"},
        {{"acquire", "a"}, true, false, "yes"},
        {{"acquire", "a"}, true, false, "1"},
        {{"acquire", "a"}, false, false, "off"},
        {{"acquire", "a"}, false, false, "no"},
        {{"acquire", "a"}, false, false, "perhaps"},
        {{"acquire", "a", "--json=off"}, false, false, "on"},
        {{"acquire", "a", "--json"}, true, false, "off"},
        {{"acquire", "a", "--format", "json"}, true},
        {{"acquire", "a", "--format=json"}, true},
        {{"acquire", "a", "--format=text"}},
        {{"acquire", "a", "--format", "sh"}, false, true},
        {{"acquire", "a", "--format=sh"}, false, true},
        {{"acquire", "a", "--format=sh", "--format=text"}},
        {{"acquire", "a", "--format=text", "--format", "sh"}, false, true},
        {{"acquire", "a", "--format=sh", "--format=json"}, true},
        {{"acquire", "a", "--format"}},
        {{"run", "a", "--", "x", "--format", "sh"}},
        {{"run", "a", "--", "x", "--format=json"}},
        {{"acquire", "a"}, false, true, "", "sh"},
        {{"acquire", "a"}, true, false, "", "json"},
        {{"acquire", "a", "--format=text"}, false, false, "", "sh"},
        {{"acquire", "a", "--format=text"}, false, false, "", "json"},
        {{"acquire", "a", "--format=sh"}, false, true, "", "json"},
        {{"acquire", "a", "--unknown"}, false, true, "", "sh"},
        {{"aquire", "a"}, false, true, "", "sh"},
        {{"aquire", "a"}, true, false, "", "json"},
        // The variable says nothing to commands that have no such flag.
        {{"check", "a"}, false, false, "", "sh"},
        {{"check", "a"}, false, false, "", "json"},
        {{"override", "list"}, false, false, "", "sh"},
        {{"override", "request", "a"}, false, true, "", "sh"},
    };
    for (const Asked& test : table) {
        const std::string what = fmt::format("{} HOLDFAST_JSON={} HOLDFAST_FORMAT={}", fmt::join(test.args, " "),
                                             test.json_variable, test.format_variable);
        setenv("HOLDFAST_JSON", test.json_variable.c_str(), 1);
        setenv("HOLDFAST_FORMAT", test.format_variable.c_str(), 1);
        EXPECT_EQ(wants_json(test.args), test.json) << what;
        EXPECT_EQ(wants_shell(test.args), test.shell) << what;
    }
    unsetenv("HOLDFAST_JSON");
    unsetenv("HOLDFAST_FORMAT");
}

}  // namespace
}  // namespace holdfast::cli
