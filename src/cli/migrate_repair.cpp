// `holdfast migrate repair` and `baseline`: decisions of a person on the ledger, under the lock.
#include "cli/command.hpp"
#include "cli/migrate.hpp"
#include "cli/prompt.hpp"
#include "guards/sql/migrate/plan.hpp"
#include "json/migrate.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::cli {
namespace {

constexpr Option done_option{{"done", Takes::nothing, "", "", From::command_line},
                             '\0',
                             "",
                             "The statement beside which the process died was carried out."};
constexpr Option again_option{
    {"again", Takes::nothing, "", "", From::command_line}, '\0', "", "It was not, and has to run."};

class Repairing {
public:
    Repairing(Context& context, const migrations::Folder& folder, migrations::Runner& runner)
        : context_(context), folder_(folder), runner_(runner) {}

    Result<int> run() {
        const auto ledger = runner_.ledger();
        if (!ledger) return std::unexpected(ledger.error());
        const auto repairs = migrations::find_repairs(folder_, *ledger);
        if (!repairs.empty()) {
            for (const migrations::Repair& repair : repairs) context_.out.note("  " + repair.what);
            const auto agreed = confirm(context_, "repair that?");
            if (!agreed) return std::unexpected(agreed.error());
            if (!*agreed) return fail(Errc::usage, "nothing was changed: it was not confirmed");
        }
        for (const migrations::Repair& repair : repairs) {
            auto repaired =
                repaired_row(repair, *std::ranges::find(*ledger, repair.version, &migrations::LedgerRow::version));
            if (!repaired) return std::unexpected(repaired.error());
            if (auto written = runner_.write(*repaired); !written) return std::unexpected(written.error());
        }
        report(repairs);
        return 0;
    }

private:
    Result<migrations::LedgerRow> repaired_row(const migrations::Repair& repair, migrations::LedgerRow row) {
        if (repair.kind == migrations::Repair::Kind::accept_removal) {
            row.status = migrations::Status::removed;
            return row;
        }
        const auto& files = row.is_repeatable() ? folder_.repeatable : folder_.versioned;
        const auto file = std::ranges::find(files, row.version, &migrations::MigrationFile::version);
        if (file == files.end())
            return fail(
                Errc::migration_dirty,
                fmt::format("{} stopped half way, and its file is gone; restore the file", printable(row.version)));
        if (repair.kind == migrations::Repair::Kind::settle) {
            auto settled = settled_row(*file, std::move(row));
            if (!settled) return settled;
            row = *std::move(settled);
        }
        row.checksum = file->checksum;
        return row;
    }

    /// So that `up` goes on with the next statement.
    Result<migrations::LedgerRow> settled_row(const migrations::MigrationFile& file, migrations::LedgerRow row) {
        const auto script = migrations::Script::of(file, placeholders_of(context_), runner_.table().dialect());
        if (!script) return std::unexpected(script.error());
        if (script->statements.size() < static_cast<std::size_t>(row.statements_done))
            return fail(Errc::migration_dirty,
                        fmt::format("{} has {} statements, and {} of it were carried out", label_of(file),
                                    script->statements.size(), row.statements_done));
        if (context_.settings.on(done_option)) {
            ++row.statements_done;
        } else if (!context_.settings.on(again_option)) {
            const auto done = runner_.settle(*script, row);
            if (!done) return std::unexpected(done.error());
            row.statements_done = *done;
        }
        row.before.clear();
        row.status = migrations::Status::running;
        return row;
    }

    void report(const std::vector<migrations::Repair>& repairs) {
        if (context_.out.style().json) {
            std::vector<std::string> words;
            for (const migrations::Repair& repair : repairs) words.push_back(repair.what);
            return context_.out.document(json::repaired(words).done());
        }
        if (repairs.empty())
            context_.out.note("nothing has to be repaired");
        else if (context_.out.tells_success())
            context_.out.note("repaired; go on with holdfast migrate up");
    }

    Context& context_;
    const migrations::Folder& folder_;
    migrations::Runner& runner_;
};

Result<int> repair(Context& context, const migrations::Database& database) {
    const auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    if (context.settings.on(done_option) && context.settings.on(again_option))
        return fail(Errc::usage, "--done and --again cannot both be true");
    return migrate_under_lock(context, database,
                              [&](migrations::Runner& runner) { return Repairing(context, *folder, runner).run(); });
}

Result<std::uint64_t> baseline_version(const Context& context) {
    const std::string& text = context.line.words.front();
    std::uint64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc{} || end != text.data() + text.size() || number == 0)
        return fail(Errc::usage, fmt::format("\"{}\" is no version: it is the number of a file", printable(text)));
    return number;
}

Result<int> set_baseline(Context& context, std::uint64_t version, migrations::Runner& runner) {
    const auto ledger = runner.ledger();
    if (!ledger) return std::unexpected(ledger.error());
    if (!ledger->empty())
        return fail(Errc::migration_order,
                    fmt::format("this database has a ledger already, up to version {}; a baseline is for "
                                "one that was made without Holdfast",
                                migrations::highest_applied(*ledger)));
    const auto agreed = confirm(context, fmt::format("take version {} and all before it as applied?", version));
    if (!agreed) return std::unexpected(agreed.error());
    if (!*agreed) return fail(Errc::usage, "nothing was changed: it was not confirmed");
    migrations::LedgerRow row;
    row.version = std::to_string(version);
    row.name = "baseline";
    row.status = migrations::Status::baseline;
    row.applied_by = context.holder().display();
    row.applied_at = to_rfc3339(context.clock.wall());
    if (auto written = runner.write(row); !written) return std::unexpected(written.error());
    if (context.out.style().json)
        context.out.document(json::baseline(row.version).done());
    else if (context.out.tells_success())
        context.out.note(fmt::format("version {} is the baseline", version));
    return 0;
}

Result<int> take_baseline(Context& context, const migrations::Database& database) {
    const auto version = baseline_version(context);
    if (!version) return std::unexpected(version.error());
    return migrate_under_lock(context, database,
                              [&](migrations::Runner& runner) { return set_baseline(context, *version, runner); });
}

Result<int> run_repair(Context& context) { return on_each_database(context, repair); }
Result<int> run_baseline(Context& context) { return on_each_database(context, take_baseline); }

constexpr std::array repair_options{opt::databases, opt::schema,  opt::schemas_like, opt::parallel,    opt::dir,
                                    done_option,    again_option, opt::yes,          opt::placeholder, opt::lock,
                                    opt::ttl,       opt::wait,    opt::no_wait,      opt::operation,   opt::reason,
                                    opt::holder,    opt::user,    opt::if_held,      opt::no_lock};
constexpr std::array baseline_options{opt::databases, opt::schema, opt::schemas_like, opt::parallel, opt::yes,
                                      opt::lock,      opt::ttl,    opt::wait,         opt::no_wait,  opt::operation,
                                      opt::reason,    opt::holder, opt::user,         opt::if_held,  opt::no_lock};
constexpr std::array version_word{Word{"VERSION"}};

}  // namespace

constinit const Command migrate_repair_command{"migrate repair",
                                               "",
                                               "Decide what a migration left behind",
                                               "Shows what is not in order and, when that is confirmed, sets the "
                                               "ledger so that up can go on: a file that was edited "
                                               "after it was applied is accepted with its text, one that is gone is "
                                               "accepted as removed, and one that stopped half way "
                                               "goes on with the next statement. Where nothing tells whether the "
                                               "statement under way was carried out, say --done or "
                                               "--again.",
                                               {},
                                               repair_options,
                                               run_repair};

constinit const Command migrate_baseline_command{"migrate baseline",
                                                 "",
                                                 "Begin with a database that exists already",
                                                 "Takes VERSION and everything before it as applied, without running "
                                                 "it: for a database that was made without Holdfast.",
                                                 version_word,
                                                 baseline_options,
                                                 run_baseline};

}  // namespace holdfast::cli
