// `holdfast migrate new` and `lint`: the folder alone, without a database.
#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "cli/command.hpp"
#include "cli/migrate.hpp"
#include "guards/sql/migrate/lint.hpp"
#include "json/migrate.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

constexpr Option down_option{
    {"down", Takes::nothing, "", "", From::command_line}, '\0', "", "Also make the .down.sql file, the way back."};
constexpr Option dialect_option{{"dialect", Takes::one, "", "sqlite|postgres|mysql"},
                                '\0',
                                "sqlite|postgres|mysql",
                                "Whose SQL it is; by default that of --database."};
constexpr Option write_sum_option{
    {"write-sum", Takes::nothing, "", "", From::command_line}, '\0', "", "Write holdfast.sum anew."};

Result<void> write_file(const fs::path& path, std::string_view text, int flags) {
    const base::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666));
    if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return std::unexpected(base::os_error(errno, "write " + printable(path.string())));
    return {};
}

Result<void> write_sum(const std::string& dir) {
    const auto folder = migrations::read_folder(dir);
    if (!folder) return std::unexpected(folder.error());
    return write_file(fs::path(dir) / migrations::sum_file, migrations::sum_of(*folder), O_TRUNC);
}

/// As the folder counts: a time, or the next of short numbers.
std::string next_number(const migrations::Folder& folder, Instant now) {
    constexpr std::size_t shortest_time = 8;
    if (!folder.versioned.empty() && folder.versioned.back().version.size() < shortest_time) {
        const std::string& newest = folder.versioned.back().file;
        return fmt::format("{:0{}}", folder.versioned.back().number + 1, newest.find('_'));
    }
    std::string digits;
    for (const char letter : to_rfc3339(now).substr(0, 19))
        if (letter >= '0' && letter <= '9') digits += letter;
    return digits;
}

Result<int> run_new(Context& context) {
    std::string name;
    for (const char letter : context.line.words.front()) {
        const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
        if (!plain && letter != ' ') return fail(Errc::usage, "a migration's name is made of letters, digits, _ and -");
        name += letter == ' ' ? '_' : letter;
    }
    const std::string dir = context.settings.text(opt::dir);
    std::error_code failed;
    fs::create_directories(dir, failed);
    if (failed) return std::unexpected(base::os_error(failed.value(), "make the folder " + printable(dir)));
    const auto folder = migrations::read_folder(dir);
    if (!folder) return std::unexpected(folder.error());
    const std::string number = next_number(*folder, context.clock.wall());
    const fs::path path = fs::path(dir) / fmt::format("{}_{}.sql", number, name);
    if (auto made = write_file(path, fmt::format("-- {}\n", name), O_EXCL); !made) return std::unexpected(made.error());
    if (context.settings.on(down_option))
        if (auto made = write_file(fs::path(dir) / fmt::format("{}_{}.down.sql", number, name), "", O_EXCL); !made)
            return std::unexpected(made.error());
    // It changes with each text: up refuses what is not listed, and lint --write-sum lists it.
    if (folder->sum)
        if (auto listed = write_sum(dir); !listed) return std::unexpected(listed.error());
    if (context.out.style().json)
        context.out.document(json::new_file(path.string()).done());
    else
        context.out.line(printable(path.string()));
    return 0;
}

Result<SqlDialect> asked_dialect(const Context& context) {
    if (!context.settings.given(dialect_option)) {
        const auto urls = database_urls(context);
        if (urls) return migrations::dialect_of(urls->front());
        return fail(Errc::usage, "whose SQL is it? say --dialect sqlite, postgres or mysql, or name the --database");
    }
    const std::string name = context.settings.text(dialect_option);
    return name == "sqlite" ? SqlDialect::sqlite : name == "postgres" ? SqlDialect::postgres : SqlDialect::mysql;
}

Result<int> run_lint(Context& context) {
    const std::string dir = context.settings.text(opt::dir);
    if (context.settings.on(write_sum_option))
        if (auto written = write_sum(dir); !written) return std::unexpected(written.error());
    const auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    const auto dialect = asked_dialect(context);
    if (!dialect) return std::unexpected(dialect.error());
    std::vector<migrations::Finding> findings;
    for (const auto* files : {&folder->versioned, &folder->repeatable})
        for (const migrations::MigrationFile& file : *files) {
            auto found = migrations::lint(file, *dialect);
            findings.insert(findings.end(), found.begin(), found.end());
        }
    std::vector<json::LintFinding> items;
    for (const migrations::Finding& finding : findings) {
        items.push_back({finding.path, finding.line, finding.rule, finding.message});
        if (!context.out.style().json)
            context.out.line(
                fmt::format("{}:{}: {}: {}", printable(finding.path), finding.line, finding.rule, finding.message));
    }
    if (context.out.style().json) context.out.document(json::lint_findings(items).done());
    return findings.empty() ? 0 : row_of(Errc::migration_failed).exit_status;
}

constexpr std::array name_word{Word{"NAME"}};
constexpr std::array new_options{opt::dir, down_option};
constexpr std::array lint_options{opt::dir, opt::database, dialect_option, write_sum_option};

}  // namespace

constinit const Command migrate_new_command{"migrate new",
                                            "",
                                            "Make an empty migration",
                                            "Makes <number>_NAME.sql in the folder and prints its path. The number is "
                                            "the time, or the next one where the folder "
                                            "counts by short numbers.",
                                            name_word,
                                            new_options,
                                            run_new};

constinit const Command migrate_lint_command{"migrate lint",
                                             "",
                                             "Find statements that can do harm",
                                             "Names statements that lose data, rewrite or lock a table in use, or "
                                             "break programs that run, with file and line; the "
                                             "exit status is then 83. A line \"-- holdfast: accept RULE\" before a "
                                             "statement accepts it; in the first lines of a "
                                             "file, in all of it.\n\nWith --write-sum, also writes holdfast.sum: where "
                                             "it is, up refuses files that it does not list, "
                                             "and two branches that both add a file conflict in git.",
                                             {},
                                             lint_options,
                                             run_lint};

}  // namespace holdfast::cli
