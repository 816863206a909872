#include "guards/sql/migrate/plan.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::guards::migrate {
namespace {

constexpr std::array<std::pair<Status, std::string_view>, 5> names{{{Status::applied, "applied"},
                                                                    {Status::running, "running"},
                                                                    {Status::failed, "failed"},
                                                                    {Status::baseline, "baseline"},
                                                                    {Status::removed, "removed"}}};

const LedgerRow* row_of(const Ledger& ledger, std::string_view version) {
    const auto found = std::ranges::find(ledger, version, &LedgerRow::version);
    return found == ledger.end() ? nullptr : &*found;
}

const MigrationFile* file_of(const Folder& folder, const LedgerRow& row) {
    const auto& files = row.is_repeatable() ? folder.repeatable : folder.versioned;
    const auto found = std::ranges::find(files, row.version, &MigrationFile::version);
    return found == files.end() ? nullptr : &*found;
}

std::uint64_t baseline_of(const Ledger& ledger) {
    std::uint64_t highest = 0;
    for (const LedgerRow& row : ledger)
        if (row.status == Status::baseline) highest = std::max(highest, row.number());
    return highest;
}

std::string label_of(const LedgerRow& row) {
    return row.is_repeatable() ? printable(row.version) : fmt::format("{}_{}", row.version, printable(row.name));
}

Error with_hint(Errc code, std::string message, std::string hint) {
    Error error{code, std::move(message)};
    error.hint = std::move(hint);
    return error;
}

Error unfinished(const LedgerRow& row, const MigrationFile* file) {
    return with_hint(
        Errc::migration_dirty,
        fmt::format("{} stopped after {} statement{}{}", file == nullptr ? label_of(row) : printable(file->path),
                    row.statements_done, row.statements_done == 1 ? "" : "s",
                    row.status == Status::failed ? ", because the database refused the next one"
                                                 : ", and its file was changed since"),
        "correct the file or the database, then run \"holdfast migrate repair\"");
}

/// Why nothing can run, if the past is not in order.
std::optional<Error> past_of(const Folder& folder, const Ledger& ledger) {
    const std::uint64_t newest_file = folder.versioned.empty() ? 0 : folder.versioned.back().number;
    for (const LedgerRow& row : ledger) {
        const MigrationFile* const file = file_of(folder, row);
        const bool changed = file != nullptr && file->checksum != row.checksum;
        if (row.status == Status::failed || (row.status == Status::running && (file == nullptr || changed)))
            return unfinished(row, file);
        if (row.status != Status::applied || row.is_repeatable()) continue;
        if (changed)
            return with_hint(Errc::migration_checksum,
                             fmt::format("{} was edited after it was applied at {}", printable(file->path),
                                         printable(row.applied_at)),
                             "restore the file and put the change into a new one; if the edit changes nothing, accept "
                             "it with \"holdfast migrate repair\"");
        if (file == nullptr && row.number() < newest_file)
            return with_hint(
                Errc::migration_order,
                fmt::format("{} was applied, and its file is not in {} although later ones are", label_of(row),
                            printable(folder.path)),
                "restore the file; if it is gone on purpose, accept that with \"holdfast migrate repair\"");
    }
    return std::nullopt;
}

/// Applied versions beyond the last file: an application that was rolled back looks like this.
std::optional<std::string> ahead_of(const Folder& folder, const Ledger& ledger) {
    const std::uint64_t newest_file = folder.versioned.empty() ? 0 : folder.versioned.back().number;
    const std::uint64_t newest_row = highest_applied(ledger);
    if (newest_row <= newest_file || newest_row <= baseline_of(ledger)) return std::nullopt;
    return fmt::format(
        "the database is ahead of the files: {} was applied, and {} ends with {}; was the application rolled back?",
        newest_row, printable(folder.path), newest_file);
}

Result<void> expect_known(const Folder& folder, std::uint64_t version) {
    if (std::ranges::find(folder.versioned, version, &MigrationFile::number) != folder.versioned.end()) return {};
    return fail(Errc::usage, fmt::format("there is no migration {} in {}", version, printable(folder.path)));
}

}  // namespace

std::string_view name_of(Status status) {
    return std::ranges::find(names, status, &decltype(names)::value_type::first)->second;
}

std::optional<Status> status_of(std::string_view name) {
    const auto* const found = std::ranges::find(names, name, &decltype(names)::value_type::second);
    return found == names.end() ? std::nullopt : std::optional(found->first);
}

std::uint64_t LedgerRow::number() const {
    std::uint64_t number = 0;
    if (!is_repeatable()) std::from_chars(version.data(), version.data() + version.size(), number);
    return number;
}

std::uint64_t highest_applied(const Ledger& ledger) {
    std::uint64_t highest = 0;
    for (const LedgerRow& row : ledger) highest = std::max(highest, row.number());
    return highest;
}

bool Plan::same_as(const Plan& other) const {
    return std::ranges::equal(steps, other.steps, [](const Step& ours, const Step& theirs) {
        return ours.file->version == theirs.file->version && ours.file->checksum == theirs.file->checksum &&
               ours.statements_done == theirs.statements_done;
    });
}

Result<Plan> plan_up(const Folder& folder, const Ledger& ledger, const PlanOptions& options) {
    if (auto error = past_of(folder, ledger)) return std::unexpected(*std::move(error));
    if (options.to)
        if (auto known = expect_known(folder, *options.to); !known) return std::unexpected(known.error());
    Plan plan;
    const std::uint64_t baseline = baseline_of(ledger);
    const std::uint64_t newest = highest_applied(ledger);
    const auto ahead = ahead_of(folder, ledger);
    if (ahead) plan.warnings.push_back(*ahead);

    for (const MigrationFile& file : folder.versioned) {
        if (file.number <= baseline || (options.to && file.number > *options.to)) continue;
        const LedgerRow* const row = row_of(ledger, file.version);
        if (row != nullptr && row->status != Status::running) continue;
        if (row == nullptr && file.number < newest && options.out_of_order == OutOfOrder::refused)
            return std::unexpected(with_hint(
                Errc::migration_order, fmt::format("{} was never applied, and {} was", printable(file.path), newest),
                "if it does not depend on what ran after its place, run it with --allow-out-of-order; "
                "otherwise give it a new number"));
        plan.steps.push_back({&file, row == nullptr ? 0 : row->statements_done, row != nullptr});
    }
    // Older texts of an application that was rolled back must not replace newer ones.
    if (options.to || ahead) return plan;
    for (const MigrationFile& file : folder.repeatable) {
        const LedgerRow* const row = row_of(ledger, file.version);
        const bool resumed = row != nullptr && row->status == Status::running;
        if (row == nullptr || resumed || row->checksum != file.checksum)
            plan.steps.push_back({&file, resumed ? row->statements_done : 0, resumed});
    }
    return plan;
}

Result<Plan> plan_down(const Folder& folder, const Ledger& ledger, const DownOptions& options) {
    for (const LedgerRow& row : ledger)
        if (row.is_unfinished()) return std::unexpected(unfinished(row, file_of(folder, row)));
    std::vector<const LedgerRow*> applied;
    for (const LedgerRow& row : ledger)
        if (row.status == Status::applied && !row.is_repeatable() && (!options.to || row.number() > *options.to))
            applied.push_back(&row);
    std::ranges::sort(applied, std::ranges::greater{}, &LedgerRow::number);
    if (!options.to && applied.size() > options.steps) applied.resize(options.steps);

    Plan plan;
    for (const LedgerRow* row : applied) {
        const auto down = folder.down.find(row->version);
        if (down == folder.down.end())
            return std::unexpected(with_hint(Errc::migration_order,
                                             fmt::format("there is no way back from {}", label_of(*row)),
                                             fmt::format("write {}_{}.down.sql", row->version, printable(row->name))));
        plan.steps.push_back({&down->second, 0, false});
    }
    return plan;
}

std::vector<Repair> find_repairs(const Folder& folder, const Ledger& ledger) {
    std::vector<Repair> repairs;
    const std::uint64_t newest_file = folder.versioned.empty() ? 0 : folder.versioned.back().number;
    for (const LedgerRow& row : ledger) {
        const MigrationFile* const file = file_of(folder, row);
        if (row.is_unfinished())
            repairs.push_back({Repair::Kind::settle, row.version,
                               fmt::format("{} stopped after {} statements", label_of(row), row.statements_done)});
        if (row.status != Status::applied || row.is_repeatable()) continue;
        if (file != nullptr && file->checksum != row.checksum)
            repairs.push_back({Repair::Kind::accept_text, row.version,
                               fmt::format("{} was edited after it was applied: accept its text", label_of(row))});
        if (file == nullptr && row.number() < newest_file)
            repairs.push_back({Repair::Kind::accept_removal, row.version,
                               fmt::format("{} was applied and its file is gone: accept that", label_of(row))});
    }
    return repairs;
}

}  // namespace holdfast::guards::migrate
