#include "harness/programs.hpp"
#include "measures/measures.hpp"
#include "sql/session.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

namespace holdfast::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int files = 1000;
constexpr int few_files = 10;

std::string statement(int number) {
    return fmt::format("CREATE TABLE t{} (id INTEGER PRIMARY KEY, name TEXT);\n", number);
}

/// A folder with `count` files of one line, and the same lines in one script beside it.
fs::path make_files(const Site& site, int count) {
    const fs::path folder = site.folder / fmt::format("migrations-{}", count);
    fs::create_directories(folder);
    std::ofstream script(folder / "all");
    for (int i = 1; i <= count; ++i) {
        std::ofstream(folder / fmt::format("{:04}_t.sql", i)) << statement(i);
        script << statement(i);
    }
    return folder;
}

std::string postgres_url() {
    const std::string url = tests::ServerPlace("postgres", tests::shared_server_port("postgres"), "p13").url();
    return url.substr(0, url.find('?'));
}

/// An empty schema, and how psql and holdfast reach it.
struct FreshSchema {
    std::string name = fresh_name();
    std::string url = postgres_url();

    FreshSchema() { expect_success(start({"psql", url, "--quiet", "--command", "CREATE SCHEMA " + name})); }
    [[nodiscard]] std::string for_psql() const { return url + "?options=-csearch_path%3D" + name; }
};

std::vector<std::string> up(const Site& site, const fs::path& folder, const std::string& url) {
    return {site.holdfast, "migrate", "up", "--yes", "--quiet", "--dir", folder.string(), "--database", url};
}
std::vector<std::string> up(const Site& site, const fs::path& folder, const FreshSchema& schema) {
    auto command = up(site, folder, schema.url);
    command.insert(command.end(), {"--schema", schema.name});
    return command;
}

std::string fresh_database(const Site& site) { return (site.folder / fresh_name()).string(); }

std::vector<Line> measure_many_files(const Site& site) {
    const fs::path folder = make_files(site, files);
    const fs::path few = make_files(site, few_files);
    const std::string script = (folder / "all").string();
    const std::array contenders{
        Contender{"sqlite3", [&] { return time_of({"sqlite3", fresh_database(site), ".read " + script}, 1); }},
        Contender{"holdfast", [&] { return time_of(up(site, folder, "sqlite:" + fresh_database(site)), 1); }},
        Contender{"psql", [&] { return time_of({"psql", FreshSchema().for_psql(), "-qf", script}, 1); }},
        Contender{"holdfast", [&] { return time_of(up(site, folder, FreshSchema()), 1); }},
        Contender{"10 files", [&] { return peak_memory_of(up(site, few, "sqlite:" + fresh_database(site))); }},
        Contender{"1,000 files", [&] { return peak_memory_of(up(site, folder, "sqlite:" + fresh_database(site))); }},
        Contender{"10 files", [&] { return peak_memory_of(up(site, few, FreshSchema())); }},
        Contender{"1,000 files", [&] { return peak_memory_of(up(site, folder, FreshSchema())); }}};
    const auto series = alternate("P13", contenders, site.rounds);
    const auto line = [&](std::string measure, std::string unit, std::size_t peer, Goal goal) {
        return Line{"P13", std::move(measure), std::move(unit), contenders[peer].name, series[peer], series[peer + 1],
                    goal};
    };
    return {line("1,000 migrations, SQLite", "ms", 0, Goal{1.5}),
            line("1,000 migrations, PostgreSQL", "ms", 2, Goal{1.5}),
            line("peak memory of 1,000, SQLite", "MB", 4, Goal{1.5}),
            line("peak memory of 1,000, PostgreSQL", "MB", 6, Goal{1.5})};
}

/// How long the slowest query of others takes while `up` wants to change a table that a reader keeps open.
double longest_wait(const Site& site, const fs::path& folder, const std::string& url) {
    constexpr milliseconds watched{8000};
    const auto connect = [&] {
        return sql::open_session(url, sql::IfAbsent::refuse, host_clock(),
                                 Deadline::in(host_clock(), milliseconds{20'000}))
            .value();
    };
    const auto run = [](sql::Session& session, const std::string& text) {
        if (!session.run({.text = text, .values = {}}, Deadline::never())) give_up("cannot run " + text);
    };
    // The user has the name of the schema with the locks, which would otherwise be the first to be searched.
    const bool has_schemas = sql::dialect_of(url) == SqlDialect::postgres;
    const std::string table = (has_schemas ? "public." : "") + fresh_name();
    const auto number = std::distance(fs::directory_iterator(folder), fs::directory_iterator()) + 1;
    std::ofstream(folder / fmt::format("{}_a.sql", number)) << fmt::format("ALTER TABLE {} ADD m INT;\n", table);
    const auto reader = connect();
    const auto other = connect();
    run(*reader, fmt::format("CREATE TABLE {} (n INT)", table));
    run(*reader, "START TRANSACTION");
    run(*reader, fmt::format("SELECT COUNT(*) FROM {}", table));
    const pid_t migrating = start(up(site, folder, url));
    std::chrono::duration<double, std::milli> longest{};
    for (const auto end = steady_clock::now() + watched; steady_clock::now() < end;) {
        const auto begin = steady_clock::now();
        run(*other, fmt::format("SELECT COUNT(*) FROM {}", table));
        longest = std::max<std::chrono::duration<double, std::milli>>(longest, steady_clock::now() - begin);
        std::this_thread::sleep_for(milliseconds{20});
    }
    run(*reader, "COMMIT");
    expect_success(migrating);
    return longest.count();
}

std::vector<Line> measure_readers(const Site& site) {
    std::vector<Line> lines;
    for (const auto& [name, kind] : {std::pair{"PostgreSQL", "postgres"}, std::pair{"MariaDB", "mysql"}}) {
        const std::string place = fresh_store(site, kind);
        const std::string url = place.substr(0, place.find('?'));
        const fs::path folder = site.folder / fmt::format("alter-{}", kind);
        fs::create_directories(folder);
        const std::array contenders{Contender{"3 s", [] { return 3000.0; }},
                                    Contender{"waits", [&] { return longest_wait(site, folder, url); }}};
        const auto series = alternate(fmt::format("P13 waits {}", name), contenders, site.rounds);
        lines.push_back({"P13", fmt::format("longest wait behind an ALTER behind a reader, {}", name), "ms",
                         contenders[0].name, series[0], series[1], Goal{1.0}});
    }
    return lines;
}

}  // namespace

std::vector<Line> measure_migrations(const Site& site) {
    auto lines = measure_many_files(site);
    auto waits = measure_readers(site);
    lines.insert(lines.end(), std::make_move_iterator(waits.begin()), std::make_move_iterator(waits.end()));
    return lines;
}

}  // namespace holdfast::bench
