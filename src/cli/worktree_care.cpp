// `holdfast worktree prune` and `doctor`.
#include "cli/command.hpp"
#include "cli/progress_line.hpp"
#include "cli/signals.hpp"
#include "cli/worktree.hpp"
#include "guards/worktree/doctor.hpp"
#include "guards/worktree/prune.hpp"
#include "json/worktree_report.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

constexpr Option keep_last_option{
    {"keep-last", Takes::one, "", "", From::command_line}, '\0', "N", "The newest N stay."};
constexpr Option keep_within_option{
    {"keep-within", Takes::one, "", "", From::command_line}, '\0', "D", "Those that are not older than this stay."};
constexpr Option dry_run_option{
    {"dry-run", Takes::nothing, "", "", From::command_line}, '\0', "", "Only name what would go."};
constexpr Option strict_option{{"strict", Takes::nothing, "", "", From::command_line},
                               '\0',
                               "",
                               "Also read every object of every snapshot and compare its hash."};
constexpr Option fix_option{
    {"fix", Takes::nothing, "", "", From::command_line}, '\0', "", "Repair what can be repaired safely."};

Result<trees::PruneRules> rules_of(const Context& context) {
    trees::PruneRules rules;
    if (context.settings.given(keep_last_option)) {
        const auto count = context.settings.number(keep_last_option, 1'000'000);
        if (!count) return std::unexpected(count.error());
        rules.keep_last = *count;
    }
    if (context.settings.given(keep_within_option)) {
        const auto time = context.settings.duration(keep_within_option);
        if (!time) return std::unexpected(time.error());
        rules.keep_within = *time;
    }
    return rules;
}

Result<int> run_prune(Context& context) {
    const auto rules = rules_of(context);
    if (!rules) return std::unexpected(rules.error());
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    const auto how = context.settings.on(dry_run_option) ? trees::PruneHow::only_tell : trees::PruneHow::remove;
    const auto pruned = trees::prune_snapshots(*repository, row->worktree_id, *rules, how, context.holder().text);
    if (!pruned) return std::unexpected(pruned.error());
    if (context.out.style().json) {
        context.out.document(
            json::snapshots_pruned(row->worktree_id, pruned->removed, pruned->kept, how == trees::PruneHow::only_tell)
                .done());
        return 0;
    }
    const std::string_view verb = how == trees::PruneHow::only_tell ? "would go" : "removed";
    for (const auto& each : pruned->removed)
        context.out.line(fmt::format("{}  {}  {}  {}", verb, each.snapshot_id, to_rfc3339(each.created_at),
                                     printable(each.message)));
    for (const auto& each : pruned->kept) context.out.note(fmt::format("stays  {}: {}", each.snapshot_id, each.why));
    return 0;
}

int exit_status_of(const json::WorktreeExamination& examination) {
    if (examination.is_healthy()) return 0;
    const auto is_tampering = [](const json::WorktreeFinding& each) {
        const int status = row_of(each.code).exit_status;
        return each.severity == json::Severity::error && status == row_of(Errc::payload_hash_mismatch).exit_status;
    };
    return row_of(std::ranges::any_of(examination.findings, is_tampering) ? Errc::payload_hash_mismatch
                                                                          : Errc::store_unsafe)
        .exit_status;
}

std::string in_words(const Output& out, const json::WorktreeFinding& finding) {
    const bool is_bad = !finding.is_fixed && finding.severity != json::Severity::info;
    const std::string_view mark = finding.is_fixed ? "fixed" : is_bad ? "FAIL " : "note ";
    return fmt::format("{}  {}: {}: {}", out.coloured(mark, is_bad ? Colour::red : Colour::green), finding.category,
                       printable(finding.path), printable(finding.description));
}

Result<int> run_doctor(Context& context) {
    const StopOnSignal signals;
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto store = lock_store_of(context, *repository);
    if (!store) return std::unexpected(store.error());
    trees::DoctorOptions options;
    options.is_strict = context.settings.on(strict_option);
    options.fixes = context.settings.on(fix_option);
    options.locks = *store;
    options.actor = context.holder().text;
    options.stop = signals.token();
    const auto examined = [&] {
        const ProgressLine line(context.out.style());
        options.progress = [&line](const std::string& id, std::uint64_t verified) {
            line.show(fmt::format("{}: {} objects verified", id, verified));
        };
        return trees::examine(*repository, options);
    }();
    if (!examined && signals.signal() != 0) return signals.exit_status();
    if (!examined) return std::unexpected(examined.error());
    if (context.out.style().json) {
        context.out.document(json::worktree_examination(*examined, options.is_strict, trees::runtime_state()).done());
        return exit_status_of(*examined);
    }
    for (const json::WorktreeFinding& finding : examined->findings) context.out.line(in_words(context.out, finding));
    context.out.line(fmt::format("{}: {} snapshots, {} events{}", examined->is_healthy() ? "healthy" : "not healthy",
                                 examined->snapshots, examined->events,
                                 options.is_strict ? fmt::format(", {} objects verified", examined->verified) : ""));
    return exit_status_of(*examined);
}

constexpr std::array prune_options{keep_last_option, keep_within_option, dry_run_option, opt::worktree, opt::holder};
constexpr std::array doctor_options{strict_option, fix_option, opt::holder};

}  // namespace

constinit const Command worktree_prune_command{
    "worktree prune",
    "",
    "Remove old snapshots of a worktree",
    "Removes the snapshots that neither --keep-last nor --keep-within keeps, and names each. The head stays, and so "
    "does "
    "what a snapshot, a restore or another reader needs at the moment. --dry-run names exactly what would go.\n\n"
    "Example: holdfast worktree prune --keep-last 10 --keep-within 30d --dry-run",
    {},
    prune_options,
    run_prune};

constinit const Command worktree_doctor_command{
    "worktree doctor",
    "",
    "Check a repository and repair what a crash left",
    "Names temporary files, intents and snapshots that a dead process left, leases that have run out, damaged "
    "snapshots "
    "and a broken audit log; exits with 84 if something was altered, with 78 if something else is wrong. --strict also "
    "compares every object with its hash, and is not content with 0 objects.\n\n"
    "--fix finishes or removes what a dead process left, and says what it did. It never removes what is damaged.\n\n"
    "Example: holdfast worktree doctor --strict --fix",
    {},
    doctor_options,
    run_doctor};

}  // namespace holdfast::cli
