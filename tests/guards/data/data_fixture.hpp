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

/// The real program on a database that a SQL shell uses at the same time.
class DataFixture : public testing::TestWithParam<SqlDialect> {
protected:
    void file(const std::string& name, std::string_view text, const std::string& folder = "data") const {
        box_.write(box_.work / folder / name, text);
    }
    void configure(std::string_view text) const { box_.write(box_.work / "holdfast.toml", text); }
    /// One table `t`.
    void configure_t(std::string_view strategy) const {
        configure(fmt::format("[[data.table]]\nname = \"t\"\nstrategy = \"{}\"\n", strategy));
    }
    /// `id` is the key, `v` a text that has room for anything.
    void create_t() {
        run("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v " + long_text() + ")");
        run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
    }
    [[nodiscard]] std::string long_text() const {
        return is(SqlDialect::mysql) ? "LONGTEXT CHARACTER SET utf8mb4" : "TEXT";
    }

    [[nodiscard]] cli_test::Environment environment() const { return {{"HOLDFAST_DATABASE", place_.url()}}; }
    [[nodiscard]] static Args command(const Args& more) {
        Args args{"data", "sync"};
        args.insert(args.end(), more.begin(), more.end());
        return args;
    }
    Ended sync(const Args& more = {"--json"}) { return box_.run(command(more), environment()); }
    [[nodiscard]] Running start_sync(const Args& more = {}) { return box_.start(command(more), environment()); }

    [[nodiscard]] bool is(SqlDialect dialect) const { return GetParam() == dialect; }
    void run(const std::string& sql) { place_(sql); }
    /// The first cell, or what went wrong.
    std::string ask(const std::string& sql) {
        try {
            return place_(sql);
        } catch (const std::exception& error) {
            return std::string("error: ") + error.what();
        }
    }
    /// `1=one 2=two`, of the table t.
    std::string rows_of_t() {
        const auto session = place_.connect();
        const auto all = session->run({.text = "SELECT id, v FROM t ORDER BY id", .values = {}}, Deadline::never());
        if (!all) return all.error().message;
        std::string text;
        for (const auto& row : all->rows)
            text += (text.empty() ? "" : " ") + row.at(0).value_or("NULL") + "=" + row.at(1).value_or("NULL");
        return text;
    }

    cli_test::Sandbox box_;
    ProtectedPlace place_{GetParam()};
};

inline auto all_dialects() { return testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql); }

}  // namespace holdfast::tests
