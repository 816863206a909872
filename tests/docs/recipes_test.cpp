// The recipes of docs/examples: tools that people use already, and deployments, each started twice at the same time on
// one PostgreSQL database.
#include "cli/sandbox.hpp"
#include "guards/sql/protected_place.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace holdfast::docs {
namespace {

namespace fs = std::filesystem;
using cli_test::Args;
using cli_test::Ended;
using cli_test::Running;
using testing::HasSubstr;

const fs::path examples = fs::path(HOLDFAST_SOURCE_DIR) / "docs" / "examples";

class Recipes : public testing::Test {
protected:
    Recipes() {
        const std::string path = std::getenv("PATH") == nullptr ? "/usr/bin:/bin" : std::getenv("PATH");
        box_.environment["PATH"] = fs::path(box_.program).parent_path().string() + ":" + path;
        box_.environment["DATABASE_URL"] = url_for_others();
        box_.environment["HOLDFAST_DATABASE"] = place_.url();
    }
    /// SQLAlchemy and pg know it by another scheme.
    [[nodiscard]] std::string url_for_others() const {
        const std::string url = place_.url();
        return "postgresql" + url.substr(url.find(':'));
    }
    void copy(const std::string& example) const {
        fs::copy(examples / example, box_.work, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    /// As a shell would find it.
    static Args called(Args command) {
        command.insert(command.begin(), "/usr/bin/env");
        return command;
    }
    /// Both come to a good end.
    void run_both(const Args& one, const Args& other) {
        Running first = box_.start_program(called(one));
        Running second = box_.start_program(called(other));
        for (Running* each : {&first, &second}) {
            const Ended ended = each->wait();
            EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
        }
    }

    cli_test::Sandbox box_;
    tests::ProtectedPlace place_{SqlDialect::postgres};
};

TEST_F(Recipes, AlembicRunsEachMigrationOnceAndOnlyUnderTheLock) {
    if (!fs::exists("/usr/bin/alembic")) GTEST_SKIP() << tests::not_here << "there is no alembic";
    copy("alembic");
    const Ended beside = box_.run_program(called({"alembic", "upgrade", "head"}));
    EXPECT_NE(beside.status, 0) << "without holdfast run";
    EXPECT_THAT(beside.err, HasSubstr("HOLDFAST_LOCK"));
    run_both({"sh", "migrate.sh"}, {"sh", "migrate.sh"});
    EXPECT_EQ(place_("SELECT COUNT(*) FROM alembic_users"), "1");
    box_.environment.insert({{"HOLDFAST_LOCK", "migrate/app"},
                             {"HOLDFAST_TOKEN", "1"},
                             {"HOLDFAST_LOCK_ID", "b0e5a7a4-0d4b-4c0e-9d58-7a1f0c3e9a11"}});
    const Ended old = box_.run_program(called({"alembic", "downgrade", "base"}));
    EXPECT_NE(old.status, 0);
    EXPECT_THAT(old.err, HasSubstr("E_FENCING_MISMATCH")) << "a holder of long ago";
    EXPECT_EQ(place_("SELECT COUNT(*) FROM alembic_users"), "1");
}

TEST_F(Recipes, KnexRunsEachMigrationOnceAlsoAfterACrash) {
    const fs::path modules = fs::path(HOLDFAST_KNEX) / "node_modules";
    if (!fs::exists(modules / ".bin" / "knex")) GTEST_SKIP() << tests::not_here << "npm could not fetch knex";
    copy("knex");
    fs::create_directory_symlink(modules, box_.work / "node_modules");
    run_both({"sh", "migrate.sh"}, {"sh", "migrate.sh"});
    EXPECT_EQ(place_("SELECT COUNT(*) FROM knex_users"), "1");
    EXPECT_EQ(place_("SELECT COUNT(*) FROM knex_migrations"), "2");
    const Ended beside = box_.run_program(called({"node_modules/.bin/knex", "migrate:rollback"}));
    EXPECT_NE(beside.status, 0) << "without holdfast run";
    EXPECT_EQ(place_("SELECT COUNT(*) FROM knex_users"), "1");
    // What a run leaves that was killed. knex alone would wait for a person from then on.
    static_cast<void>(place_("UPDATE knex_migrations_lock SET is_locked = 1"));
    static_cast<void>(place_("DELETE FROM knex_migrations WHERE name LIKE '20240102%'"));
    static_cast<void>(place_("DELETE FROM knex_users"));
    run_both({"sh", "migrate.sh"}, {"sh", "migrate.sh"});
    EXPECT_EQ(place_("SELECT COUNT(*) FROM knex_users"), "1");
}

/// The values of `command:` in a file, which are lists of JSON there.
std::vector<Args> commands_in(const fs::path& file) {
    constexpr std::string_view key = "command: ";
    std::vector<Args> commands;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const auto at = line.find(key);
        if (at == std::string::npos) continue;
        const auto words = cli_test::Document::parse(line.substr(at + key.size()));
        Args command;
        for (std::size_t i = 0; words && i < words->size(""); ++i)
            command.push_back(words->text("/" + std::to_string(i)));
        commands.push_back(std::move(command));
    }
    return commands;
}

class Deployments : public Recipes {
protected:
    Deployments() {
        box_.write(box_.work / "migrations" / "1_users.sql", "CREATE TABLE users (n INT);\nSELECT pg_sleep(0.3);");
        box_.write(box_.work / "migrations" / "2_first.sql", "INSERT INTO users VALUES (1);");
        box_.write(box_.work / "app", "#!/bin/sh\necho \"$@\" >>started\n");
        fs::permissions(box_.work / "app", fs::perms::owner_all);
    }
};

TEST_F(Deployments, TwoServicesOfComposeMigrateOnceAndStart) {
    const auto commands = commands_in(examples / "deploy" / "compose.yaml");
    ASSERT_EQ(commands.size(), 2U);
    run_both(commands[0], commands[1]);
    EXPECT_EQ(place_("SELECT COUNT(*) FROM users"), "1");
    std::ifstream started(box_.work / "started");
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(started), {}, '\n'), 2) << "each service began";
}

TEST_F(Deployments, InitContainersMigrateOnceOrWaitForIt) {
    auto commands = commands_in(examples / "deploy" / "kubernetes.yaml");
    std::erase_if(commands, [](const Args& command) { return command.front() != "holdfast"; });
    ASSERT_EQ(commands.size(), 3U) << "the pods, the job, and the pod that waits";
    Running waiting = box_.start_program(called(commands[2]));
    run_both(commands[0], commands[1]);
    const Ended waited = waiting.wait();
    EXPECT_EQ(waited.status, 0) << waited.err;
    EXPECT_EQ(place_("SELECT COUNT(*) FROM users"), "1");
}

}  // namespace
}  // namespace holdfast::docs
