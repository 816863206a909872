#include "harness/programs.hpp"
#include "measures/measures.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace holdfast::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto create_table =
    "CREATE TABLE p13 (id INTEGER PRIMARY KEY, code TEXT, name TEXT, amount NUMERIC, note TEXT)";

/// A folder for `data sync`: a file with about `megabytes` of rows, and configurations beside it.
fs::path make_csv(const Site& site, int megabytes) {
    const fs::path folder = site.folder / fmt::format("data-{}", megabytes);
    fs::create_directories(folder / "data" / "p13");
    for (const char* strategy : {"truncate", "mirror"})
        std::ofstream(folder / fmt::format("{}.toml", strategy))
            << fmt::format("[[data.table]]\nname = \"p13\"\nstrategy = \"{}\"\n", strategy);
    std::ofstream csv(folder / "data" / "p13" / "rows.csv");
    csv << "id,code,name,amount,note\n";
    const auto enough = static_cast<std::streamoff>(megabytes) * 1'000'000;
    for (int i = 1; csv.tellp() < enough; ++i)
        csv << fmt::format("{},{:07},\"Name, the {}th\",{}.{:02},{}\n", i, i * 7 % 9'999'991, i, i % 10'000, i % 100,
                           i % 3 == 0 ? "" : "a note of some length that nobody reads");
    return folder;
}

std::string csv_of(const fs::path& folder) { return (folder / "data" / "p13" / "rows.csv").string(); }

std::vector<std::string> sync(const Site& site, const fs::path& folder, const std::string& strategy,
                              const std::string& url) {
    return {site.holdfast, "data",
            "sync",        "--quiet",
            "--config",    (folder / (strategy + ".toml")).string(),
            "--data-dir",  (folder / "data").string(),
            "--database",  url};
}

/// With an empty table.
std::string file_with_table(const Site& site) {
    std::string path = (site.folder / fresh_name()).string();
    expect_success(start({"sqlite3", path, create_table}));
    return path;
}

/// A schema with an empty table, which goes with this object.
class SchemaWithTable {
public:
    SchemaWithTable() {
        const std::string whole = tests::ServerPlace("postgres", tests::shared_server_port("postgres"), "p13").url();
        server_ = whole.substr(0, whole.find('?'));
        expect_success(start({"psql", server_, "--quiet", "--command", "CREATE SCHEMA " + name_}));
        expect_success(start({"psql", url(), "--quiet", "--command", create_table}));
    }
    SchemaWithTable(const SchemaWithTable&) = delete;
    SchemaWithTable& operator=(const SchemaWithTable&) = delete;
    ~SchemaWithTable() {
        expect_success(start({"psql", server_, "--quiet", "--command", fmt::format("DROP SCHEMA {} CASCADE", name_)}));
    }
    [[nodiscard]] std::string url() const { return server_ + "?options=-csearch_path%3D" + name_; }

private:
    std::string name_ = fresh_name();
    std::string server_{};
};

double time_in_file(const Site& site, const std::function<std::vector<std::string>(const std::string& path)>& command) {
    const std::string path = file_with_table(site);
    const double time = time_of(command(path), 1);
    fs::remove(path);
    return time;
}
double time_in_schema(const std::function<std::vector<std::string>(const std::string& url)>& command) {
    const SchemaWithTable schema;
    return time_of(command(schema.url()), 1);
}
double memory_in_file(const Site& site, const fs::path& folder, const std::string& strategy) {
    const std::string path = file_with_table(site);
    const double memory = peak_memory_of(sync(site, folder, strategy, "sqlite:" + path));
    fs::remove(path);
    return memory;
}
double memory_in_schema(const Site& site, const fs::path& folder, const std::string& strategy) {
    const SchemaWithTable schema;
    return peak_memory_of(sync(site, folder, strategy, schema.url()));
}

}  // namespace

std::vector<Line> measure_data(const Site& site) {
    const fs::path folder = make_csv(site, site.csv_megabytes);
    const fs::path small = make_csv(site, 1);
    const std::string csv = csv_of(folder);
    const auto import = [&](const std::string& path) {
        return std::vector<std::string>{"sqlite3", path, ".mode csv", fmt::format(".import --skip 1 {} p13", csv)};
    };
    const auto copy = [&](const std::string& url) {
        return std::vector<std::string>{"psql", url, "--quiet", "--command",
                                        fmt::format("\\copy p13 FROM '{}' CSV HEADER", csv)};
    };
    const auto in_file = [&](const std::string& strategy) {
        return [&, strategy] {
            return time_in_file(
                site, [&](const std::string& path) { return sync(site, folder, strategy, "sqlite:" + path); });
        };
    };
    const auto in_schema = [&](const std::string& strategy) {
        return [&, strategy] {
            return time_in_schema([&](const std::string& url) { return sync(site, folder, strategy, url); });
        };
    };
    const std::array contenders{
        Contender{"sqlite3 .import", [&] { return time_in_file(site, import); }},
        Contender{"truncate", in_file("truncate")},
        Contender{"mirror", in_file("mirror")},
        Contender{"psql \\copy", [&] { return time_in_schema(copy); }},
        Contender{"truncate", in_schema("truncate")},
        Contender{"mirror", in_schema("mirror")},
        Contender{"1 MB", [&] { return memory_in_file(site, small, "mirror"); }},
        Contender{"all", [&] { return memory_in_file(site, folder, "mirror"); }},
        Contender{"1 MB", [&] { return memory_in_schema(site, small, "mirror"); }},
        Contender{"all", [&] { return memory_in_schema(site, folder, "mirror"); }},
    };
    const auto series = alternate("P13 data", contenders, site.rounds);
    const std::string size = fmt::format("{} MB of CSV", site.csv_megabytes);
    const auto line = [&](const std::string& measure, std::string unit, std::size_t peer, std::size_t ours,
                          std::optional<Goal> goal) {
        return Line{"P13", size + ", " + measure, std::move(unit), contenders[peer].name, series[peer], series[ours],
                    goal};
    };
    return {line("truncate, SQLite", "ms", 0, 1, Goal{1.5}),
            line("mirror of an empty table, SQLite", "ms", 0, 2, std::nullopt),
            line("truncate, PostgreSQL", "ms", 3, 4, Goal{1.5}),
            line("mirror of an empty table, PostgreSQL", "ms", 3, 5, std::nullopt),
            line("peak memory, SQLite", "MB", 6, 7, Goal{1.5}),
            line("peak memory, PostgreSQL", "MB", 8, 9, Goal{1.5})};
}

}  // namespace holdfast::bench
