#pragma once

#include "cli/sandbox.hpp"
#include "guards/sql/protected_place.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <string_view>

namespace holdfast::tests {

using cli_test::Args;
using cli_test::Ended;
using cli_test::eventually;
using cli_test::Running;
using testing::AllOf;
using testing::HasSubstr;

/// The real program with its three processes, on a database that other sessions use at the same time.
class MigrateFixture : public testing::TestWithParam<SqlDialect> {
protected:
    void file(const std::string& name, std::string_view text) const {
        box_.write(box_.work / "migrations" / name, text);
    }
    void two_files() const {
        file("0001_users.sql", "CREATE TABLE users (id INT PRIMARY KEY);\nINSERT INTO users VALUES (1);\n");
        file("0002_name.sql", "ALTER TABLE users ADD name VARCHAR(20);\nCREATE TABLE log (n INT);\n");
    }

    [[nodiscard]] Args command(const std::string& verb, const Args& more = {}) const {
        Args args{"migrate", verb};
        args.insert(args.end(), more.begin(), more.end());
        return args;
    }
    [[nodiscard]] cli_test::Environment environment() const { return {{"HOLDFAST_DATABASE", place_.url()}}; }
    Ended migrate(const std::string& verb, const Args& more = {}) {
        return box_.run(command(verb, more), environment());
    }
    Ended up(const Args& more = {}) {
        Args args{"--yes"};
        args.insert(args.end(), more.begin(), more.end());
        return migrate("up", args);
    }
    [[nodiscard]] Running start_up(const Args& more = {}) {
        Args args{"--yes"};
        args.insert(args.end(), more.begin(), more.end());
        return box_.start(command("up", args), environment());
    }

    [[nodiscard]] bool is(SqlDialect dialect) const { return GetParam() == dialect; }
    /// The first cell, or what went wrong.
    std::string ask(const std::string& sql) {
        try {
            return place_(sql);
        } catch (const std::exception& error) {
            return std::string("error: ") + error.what();
        }
    }
    /// Where the lock lives if no store is named.
    [[nodiscard]] std::string lock_store() const { return place_.url() + (is(SqlDialect::sqlite) ? "-locks" : ""); }
    std::string ledger_of(const std::string& version) {
        return ask("SELECT status FROM holdfast_migrations WHERE version = '" + version + "'");
    }

    cli_test::Sandbox box_;
    ProtectedPlace place_{GetParam()};
};

}  // namespace holdfast::tests
