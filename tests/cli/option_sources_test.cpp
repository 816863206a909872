// Where the value of an option comes from, for every option of every command: flag, variable, configuration file,
// default, in that order; and which source an error names for an invalid value. Method: the parts themselves, in this
// process.
#include "cli/settle.hpp"
#include "sandbox.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace holdfast::cli {
namespace {

using cli_test::Environment;
using cli_test::Sandbox;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Given = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Variables that are set while this lives.
class Variables {
public:
    explicit Variables(const Environment& variables) : variables_(variables) {
        for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
    }
    ~Variables() {
        for (const auto& [name, value] : variables_) unsetenv(name.c_str());
    }
    Variables(const Variables&) = delete;
    Variables& operator=(const Variables&) = delete;

private:
    Environment variables_;
};

class OptionSources : public testing::Test {
protected:
    /// What `command` is told by flags, variables and the text of a configuration file.
    Result<Settings> settle(const Command& command, const Given& given, const Environment& variables = {},
                            const std::string& file = "") {
        box.write(config, file);
        CommandLine line;
        line.command = &command;
        line.given = given;
        line.given.emplace("config", std::vector{config.string()});
        const Variables set(variables);
        return cli::settle(line);
    }
    Result<Settings> acquire(const Given& given, const Environment& variables = {}, const std::string& file = "") {
        return settle(acquire_command, given, variables, file);
    }

    Sandbox box;
    const std::filesystem::path config = box.root / "named.toml";
};

/// Different values that an option accepts, for different `place`s.
std::string sample(const Option& option, std::size_t place) {
    if (option.takes == Takes::nothing) return place % 2 == 0 ? "off" : "on";
    const auto choices = config::split_choices(option.choices);
    if (!choices.empty()) return std::string(choices[place % choices.size()]);
    return option.name == opt::store.name ? fmt::format("sqlite:/{}.db", place) : fmt::format("value-{}", place);
}

bool reads_files(const Command& command) {
    return &command != &help_command && &command != &completion_command && &command != &version_command;
}

std::string line_in_file(const Option& option, const std::string& value) {
    return fmt::format("{} = \"{}\"\n", key_of(option), value);
}

TEST_F(OptionSources, AFlagCountsMoreThanItsVariableAndThatMoreThanItsKeyForEveryOption) {
    std::set<std::string> keys;
    for (const Command* command : commands())
        for (const Option* option : options_of(*command))
            if (option->from == From::anywhere) keys.insert(key_of(*option));
    for (const Command* command : commands())
        for (const Option* option : options_of(*command)) {
            if (option->name == opt::config.name) continue;
            const std::string what = fmt::format("{} --{}", command->name, option->name);
            const Environment variable{{variable_of(*option), sample(*option, 2)}};
            const bool has_key = keys.contains(key_of(*option));
            const std::string file = has_key ? line_in_file(*option, sample(*option, 3)) : "";
            const Given flag{{std::string(option->name), {sample(*option, 1)}}};

            const auto all = settle(*command, flag, variable, file);
            ASSERT_TRUE(all) << what << all.error().message;
            EXPECT_EQ(all->text(*option), sample(*option, 1)) << what;
            EXPECT_TRUE(all->on_command_line(*option)) << what;
            EXPECT_FALSE(all->in_environment(*option)) << what;

            const std::string from_file =
                has_key && reads_files(*command) ? sample(*option, 3) : std::string(option->fallback);
            const auto without_flag = settle(*command, {}, variable, file);
            ASSERT_TRUE(without_flag) << what;
            EXPECT_EQ(without_flag->text(*option), option->from == From::command_line ? from_file : sample(*option, 2))
                << what;
            EXPECT_FALSE(without_flag->on_command_line(*option)) << what;

            const auto only_file = settle(*command, {}, {}, file);
            ASSERT_TRUE(only_file) << what;
            EXPECT_EQ(only_file->text(*option), from_file) << what;
            EXPECT_EQ(only_file->given(*option), has_key && reads_files(*command)) << what;

            // A secret, a confirmation, or what is for one call only: such a key would work for every call.
            if (has_key || !reads_files(*command)) continue;
            const auto refused = settle(*command, {}, {}, "\n" + line_in_file(*option, sample(*option, 3)));
            ASSERT_FALSE(refused) << what;
            EXPECT_EQ(refused.error().code, Errc::config) << what;
            EXPECT_THAT(refused.error().message,
                        AllOf(StartsWith(config.string() + ":2: "), HasSubstr("unknown key \"" + key_of(*option))))
                << what;
        }
}

TEST_F(OptionSources, AValueThatIsNoneIsBlamedOnWhereItStandsForEveryOption) {
    for (const Command* command : commands())
        for (const Option* option : options_of(*command)) {
            const std::string what = fmt::format("{} --{}", command->name, option->name);
            const bool is_switch = option->takes == Takes::nothing;
            if (!is_switch && option->choices.empty()) continue;
            for (const char* none : {"maybe", "", "ON", "on "}) {
                const auto flag = settle(*command, {{std::string(option->name), {none}}});
                ASSERT_FALSE(flag) << what;
                EXPECT_EQ(flag.error().code, Errc::usage) << what;
                EXPECT_THAT(flag.error().message, StartsWith(fmt::format("--{}: ", option->name))) << what;
            }
            if (option->from != From::command_line) {
                const auto variable = settle(*command, {}, {{variable_of(*option), "maybe"}});
                ASSERT_FALSE(variable) << what;
                EXPECT_EQ(variable.error().code, Errc::usage) << what;
                EXPECT_THAT(variable.error().message, StartsWith(variable_of(*option) + ": ")) << what;
            }
            if (option->from == From::anywhere && reads_files(*command)) {
                const auto file = settle(*command, {}, {}, "\n\n" + line_in_file(*option, "maybe"));
                ASSERT_FALSE(file) << what;
                EXPECT_EQ(file.error().code, Errc::config) << what;
                EXPECT_THAT(file.error().message, StartsWith(config.string() + ":3: ")) << what;
            }
        }
}

TEST_F(OptionSources, ASwitchUnderstandsTheseWordsAndNoOthers) {
    for (const char* yes : {"on", "true", "yes", "1", "skip"})
        EXPECT_TRUE(acquire({}, {{"HOLDFAST_QUIET", yes}})->on(opt::quiet)) << yes;
    for (const char* no : {"off", "false", "no", "0", "fail"})
        EXPECT_FALSE(acquire({}, {{"HOLDFAST_QUIET", no}})->on(opt::quiet)) << no;
    for (const char* neither : {"On", "y", "n", "2", "enabled", "-1"})
        EXPECT_FALSE(acquire({}, {{"HOLDFAST_QUIET", neither}})) << neither;
    EXPECT_TRUE(acquire({}, {}, "quiet = true\n")->on(opt::quiet));
    EXPECT_FALSE(acquire({}, {}, "quiet = false\n")->on(opt::quiet));
    EXPECT_FALSE(acquire({{"quiet", {"off"}}}, {{"HOLDFAST_QUIET", "on"}})->on(opt::quiet));
}

TEST_F(OptionSources, ANumberIsDigitsWithinItsLimitAndNothingElse) {
    for (const char* good : {"0", "9", "255"})
        EXPECT_EQ(acquire({{"conflict-exit-code", {good}}})->number(opt::conflict_exit_code, 255).value(),
                  std::stoull(good));
    for (const char* bad : {"", "x", "5x", "5 ", " 5", "-1", "+1", "256", "1e2", "0x10", "5.0", "99999999999999999999"})
        for (const auto& settings : {acquire({{"conflict-exit-code", {bad}}}),
                                     acquire({}, {}, fmt::format("conflict_exit_code = \"{}\"\n", bad))}) {
            const auto number = settings->number(opt::conflict_exit_code, 255);
            ASSERT_FALSE(number) << bad;
            EXPECT_EQ(number.error().code,
                      settings->on_command_line(opt::conflict_exit_code) ? Errc::usage : Errc::config);
            EXPECT_THAT(number.error().message, HasSubstr("is not a number from 0 to 255")) << bad;
        }
}

TEST_F(OptionSources, ATimeIsBlamedOnWhereItStands) {
    for (const char* bad : {"", "5", "-5s", "5 s", "s", "soon", "367d", "99999999999999999999s"}) {
        const auto flag = acquire({{"ttl", {bad}}, {"max-hold", {bad}}, {"wait", {bad}}});
        ASSERT_TRUE(flag);
        for (const auto& [option, error] : {std::pair{opt::ttl, flag->ttl(opt::ttl).error()},
                                            std::pair{opt::max_hold, flag->duration(opt::max_hold).error()},
                                            std::pair{opt::wait, flag->wait().error()}}) {
            EXPECT_EQ(error.code, Errc::usage) << bad;
            EXPECT_THAT(error.message, StartsWith(fmt::format("--{}: ", option.name))) << bad;
        }
        const auto file = acquire({}, {}, fmt::format("ttl = \"{0}\"\nmax_hold = \"{0}\"\nwait = \"{0}\"\n", bad));
        ASSERT_TRUE(file);
        for (const auto& [line, error] :
             {std::pair{1, file->ttl(opt::ttl).error()}, std::pair{2, file->duration(opt::max_hold).error()},
              std::pair{3, file->wait().error()}}) {
            EXPECT_EQ(error.code, Errc::config) << bad;
            EXPECT_THAT(error.message, StartsWith(fmt::format("{}:{}: ", config.string(), line))) << bad;
        }
    }
    EXPECT_EQ(acquire({{"max-hold", {"366d"}}})->duration(opt::max_hold).value(), Ttl::longest);
    EXPECT_FALSE(acquire({{"ttl", {"0"}}})->ttl(opt::ttl)) << "a wait may be 0, a lease may not";
}

TEST_F(OptionSources, NotToWaitCountsMoreThanEveryWait) {
    EXPECT_EQ(acquire({{"wait", {"1m"}}})->wait().value(), milliseconds{60'000});
    EXPECT_EQ(acquire({{"wait", {"forever"}}})->wait().value(), milliseconds::max());
    EXPECT_EQ(acquire({})->wait().value(), milliseconds{0});
    EXPECT_EQ(acquire({{"wait", {"1m"}}, {"no-wait", {"on"}}})->wait().value(), milliseconds{0});
    EXPECT_EQ(acquire({{"no-wait", {"on"}}}, {{"HOLDFAST_WAIT", "forever"}})->wait().value(), milliseconds{0});
    EXPECT_EQ(acquire({{"no-wait", {"on"}}}, {}, "wait = \"1m\"\n")->wait().value(), milliseconds{0});
    EXPECT_EQ(acquire({{"no-wait", {"off"}}, {"wait", {"1m"}}})->wait().value(), milliseconds{60'000});
    // With a variable, an exported one would end waits that a script asks for.
    EXPECT_EQ(acquire({{"wait", {"1m"}}}, {{"HOLDFAST_NO_WAIT", "on"}})->wait().value(), milliseconds{60'000});
}

TEST_F(OptionSources, OfSeveralStoresEachBeginsWithAScheme) {
    for (const char* bad : {"x sqlite:a", "sqlite:a x", "sqlite:a x file:b", "sqlite:a\tfile:b\nse:cret"}) {
        const auto refused = acquire({}, {{"HOLDFAST_STORE", bad}});
        ASSERT_FALSE(refused) << bad;
        EXPECT_EQ(refused.error().code, Errc::config) << bad;
        EXPECT_THAT(refused.error().message, AllOf(StartsWith("HOLDFAST_STORE: "), HasSubstr("%20"))) << bad;
        EXPECT_THAT(refused.error().message, Not(HasSubstr("cret"))) << "it may be half a password";
    }
    const auto two = acquire({}, {{"HOLDFAST_STORE", " sqlite:a \n file:b\t"}});
    ASSERT_TRUE(two);
    EXPECT_THAT(two->texts(opt::store), testing::ElementsAre("sqlite:a", "file:b"));
    EXPECT_EQ(two->store_url().error().code, Errc::usage);
    EXPECT_THAT(two->store_url().error().message, StartsWith("HOLDFAST_STORE: several stores"));
    EXPECT_THAT(acquire({}, {{"HOLDFAST_STORE", " \n"}}).error().message, StartsWith("HOLDFAST_STORE: no store"));
}

TEST_F(OptionSources, NamesAreBlamedOnWhereTheyStand) {
    for (const char* bad : {"", "..", "a/../b"}) {
        const auto flag = acquire({{"unless-held", {"good", bad}}})->names(opt::unless_held);
        ASSERT_FALSE(flag) << bad;
        EXPECT_EQ(flag.error().code, Errc::name_invalid) << bad;
        EXPECT_THAT(flag.error().message, StartsWith("--unless-held: ")) << bad;
        const auto file =
            acquire({}, {}, fmt::format("unless_held = [\"good\", \"{}\"]\n", bad))->names(opt::unless_held);
        ASSERT_FALSE(file) << bad;
        EXPECT_EQ(file.error().code, Errc::config) << bad;
        EXPECT_THAT(file.error().message, StartsWith(config.string() + ":1: ")) << bad;
    }
    const auto variable = acquire({}, {{"HOLDFAST_UNLESS_HELD", "\nx\n\ny\n"}})->names(opt::unless_held);
    ASSERT_TRUE(variable);
    EXPECT_EQ(variable->size(), 2U);
    EXPECT_EQ(acquire({}, {{"HOLDFAST_UNLESS_HELD", "x,y"}}).error().code, Errc::usage);
}

TEST_F(OptionSources, WhatAPolicyRefusesIsBlamedOnWhereItStands) {
    const std::string policy =
        "[[policy]]\nmatch = \"x\"\nlongest_ttl = \"1m\"\nlongest_hold = \"5m\"\nmay_wait = false\n";
    const LockName name = *LockName::parse("x");
    const auto refused = [&](const Given& given, const Environment& variables, const std::string& top) {
        const auto terms = acquire(given, variables, top + policy)->terms_for(name);
        return terms ? "granted" : fmt::format("{} {}", row_of(terms.error().code).name, terms.error().message);
    };
    EXPECT_THAT(refused({{"ttl", {"2m"}}}, {}, ""), StartsWith("E_USAGE --ttl: a ttl of 2 min"));
    EXPECT_THAT(refused({}, {{"HOLDFAST_TTL", "2m"}}, ""), StartsWith("E_USAGE HOLDFAST_TTL: "));
    EXPECT_THAT(refused({}, {}, "ttl = \"2m\"\n"), StartsWith("E_CONFIG " + config.string() + ":1: "));
    EXPECT_THAT(refused({{"max-hold", {"6m"}}}, {}, ""), StartsWith("E_USAGE --max-hold: a hold of 6 min"));
    EXPECT_THAT(refused({}, {{"HOLDFAST_MAX_HOLD", "6m"}}, ""), StartsWith("E_USAGE HOLDFAST_MAX_HOLD: "));
    EXPECT_THAT(refused({}, {}, "max_hold = \"6m\"\n"), StartsWith("E_CONFIG " + config.string() + ":1: "));
    EXPECT_THAT(refused({{"ttl", {"1m"}}, {"max-hold", {"5m"}}}, {}, ""), "granted") << "the limits themselves";
    for (const char* wait : {"1s", "forever"}) {
        EXPECT_THAT(refused({{"wait", {wait}}}, {}, ""), AllOf(StartsWith("E_USAGE "), HasSubstr("may_wait")));
        EXPECT_THAT(refused({}, {{"HOLDFAST_WAIT", wait}}, ""), AllOf(StartsWith("E_USAGE "), HasSubstr("may_wait")));
        // A default for all locks gives way.
        EXPECT_EQ(refused({}, {}, fmt::format("wait = \"{}\"\n", wait)), "granted");
    }
    EXPECT_EQ(refused({{"wait", {"0"}}}, {}, ""), "granted");
    EXPECT_EQ(refused({{"no-wait", {"on"}}}, {{"HOLDFAST_WAIT", "1m"}}, ""), "granted");
}

TEST_F(OptionSources, APolicyIsReadAsItIsWritten) {
    const auto terms = [&](const std::string& lines) {
        return acquire({}, {}, "[[policy]]\nmatch = \"x\"\n" + lines)->terms_for(*LockName::parse("x"));
    };
    EXPECT_EQ(terms("ttl = \"7s\"\n")->ttl.time(), milliseconds{7000});
    EXPECT_EQ(terms("longest_ttl = \"7s\"\n")->longest_ttl, milliseconds{7000});
    EXPECT_EQ(terms("longest_hold = \"7m\"\n")->max_hold, milliseconds{420'000});
    EXPECT_EQ(terms("wait = \"7s\"\n")->wait, milliseconds{7000});
    EXPECT_EQ(terms("wait = \"forever\"\n")->wait, milliseconds::max());
    EXPECT_EQ(terms("")->wait, milliseconds{0});
    EXPECT_EQ(terms("renew_interval = \"3s\"\n")->renew_interval, milliseconds{3000});
    EXPECT_FALSE(terms("renew = false\n")->renew);
    EXPECT_TRUE(terms("renew = true\n")->renew);
    EXPECT_EQ(terms("unless_held = [\"y\", \"z\"]\n")->unless_held.size(), 2U);
    EXPECT_EQ(terms("unless_held = \"y\"\n")->unless_held.size(), 1U);
    for (const char* contradiction : {"ttl = \"2m\"\nlongest_ttl = \"1m\"\n", "wait = \"1m\"\nmay_wait = false\n",
                                      "wait = \"forever\"\nmay_wait = false\n", "unless_held = \"y/*\"\n"}) {
        ASSERT_FALSE(terms(contradiction)) << contradiction;
        EXPECT_EQ(terms(contradiction).error().code, Errc::config) << contradiction;
    }
    for (const char* mistake :
         {"ttl = true\n", "ttl = [\"1s\", \"2s\"]\n", "longest_ttl = \"x\"\n", "longest_hold = \"-1s\"\n",
          "renew_interval = \"x\"\n", "wait = \"never\"\n", "renew = \"maybe\"\n", "may_wait = \"maybe\"\n",
          "renew = 1\n", "may_wait = 1\n", "unless_held = \"a,b\"\n", "unless_held = [[\"a\"]]\n",
          "match = 1979-05-27\n", "longest_hol = \"1m\"\n"}) {
        const auto refused = acquire({}, {}, "[[policy]]\nmatch = \"x\"\n" + std::string(mistake));
        ASSERT_FALSE(refused) << mistake;
        EXPECT_EQ(refused.error().code, Errc::config) << mistake;
        EXPECT_THAT(refused.error().message, StartsWith(config.string() + ":")) << mistake;
    }
    EXPECT_FALSE(acquire({}, {}, "[policy]\nmatch = \"x\"\n")) << "one table is no list of policies";
    EXPECT_FALSE(acquire({}, {}, "policy = [1]\n"));
}

TEST_F(OptionSources, ALeaseInTheEnvironmentForbidsTheDefaultStore) {
    const std::string lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    const std::string its_id = lease.substr(0, 36);
    const Environment usual{{"XDG_STATE_HOME", "/nowhere"}};
    const auto code = [&](const Command& command, Environment variables, const Given& given = {}) {
        variables.insert(usual.begin(), usual.end());
        const auto settings = settle(command, given, variables);
        const Variables set(variables);
        const auto urls = settings->store_urls();
        return urls ? urls->front() : std::string(row_of(urls.error().code).name);
    };
    const std::string fallback = "sqlite:/nowhere/holdfast/holdfast.db";
    EXPECT_EQ(code(acquire_command, {}), fallback);
    for (const Command* command : {&acquire_command, &status_command, &history_command, &check_command,
                                   &override_approve_command, &override_deny_command}) {
        EXPECT_EQ(code(*command, {{"HOLDFAST_LEASE", lease}}), "E_CONFIG") << command->name;
        EXPECT_EQ(code(*command, {{"HOLDFAST_LEASE", lease}, {"HOLDFAST_IN_DEFAULT_STORE", its_id}}), fallback);
        EXPECT_EQ(code(*command, {{"HOLDFAST_LEASE", lease}, {"HOLDFAST_IN_DEFAULT_STORE", its_id.substr(1)}}),
                  "E_CONFIG");
    }
    // What presents the lease is refused by a store that does not know it.
    for (const Command* command : {&renew_command, &release_command, &transfer_command}) {
        EXPECT_EQ(code(*command, {{"HOLDFAST_LEASE", lease}}), fallback) << command->name;
        for (const char* variable : {"HOLDFAST_LEASES", "HOLDFAST_LOCK_ID", "HOLDFAST_STORE_WITHHELD"})
            EXPECT_EQ(code(*command, {{variable, "x"}}), "E_CONFIG") << command->name << variable;
    }
    EXPECT_EQ(code(release_command, {{"HOLDFAST_LEASE", lease}}, {{"if-held", {"on"}}}), "E_CONFIG");
    EXPECT_EQ(code(release_command, {{"HOLDFAST_LEASE", lease}}, {{"if-held", {"off"}}}), fallback);
}

}  // namespace
}  // namespace holdfast::cli
