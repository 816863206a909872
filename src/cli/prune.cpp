#include "holdfast/prune.hpp"

#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/progress_line.hpp"
#include "cli/signals.hpp"
#include "client/limits.hpp"
#include "json/event.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr Option keep{{"keep", Takes::one, "90d", "", From::environment}, '\0', "D", "Events younger than this stay."};
constexpr Option dry_run{
    {"dry-run", Takes::nothing, "", "", From::environment}, '\0', "", "Only say what would be removed."};
constexpr std::array options{keep, dry_run, opt::reason, opt::holder};

Result<int> run(Context& context) {
    const auto time = context.settings.duration(keep);
    if (!time) return std::unexpected(time.error());
    const Prune any{*LockName::parse("any"), 1, context.holder().text, context.settings.text(opt::reason)};
    if (auto error = client::beyond_limits(any)) return std::unexpected(std::move(*error));
    const StopOnSignal signals;
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    PruneOptions how{.keep = *time,
                     .actor = context.holder().text,
                     .reason = context.settings.text(opt::reason),
                     .only_count = context.settings.on(dry_run),
                     .stop = signals.token()};
    const auto pruned = [&] {
        const ProgressLine line(context.out.style());
        how.on_progress = [&line](const Pruned& so_far) {
            line.show(fmt::format("{} locks read, {} events removed", so_far.visited, so_far.events));
        };
        return prune(**store, how);
    }();
    if (!pruned) return std::unexpected(pruned.error());
    if (context.out.style().json) {
        context.out.document(json::pruned(pruned->events, pruned->locks, how.only_count).done());
    } else if (!context.out.style().quiet) {
        context.out.line(fmt::format("{} events of {} locks {} removed; those of the last {} stay", pruned->events,
                                     pruned->locks, how.only_count ? "would be" : "were", to_words(*time)));
    }
    return signals.signal() != 0 ? signals.exit_status() : 0;
}

}  // namespace

constinit const Command prune_command{
    "prune",
    "",
    "Remove old events from the audit log",
    "Removes what is older than --keep from the audit log of every lock, and leaves each lock its newest event. "
    "\"history --verify\" still checks all that is left. The log tells who pruned it, when and how far. Others take "
    "and "
    "release their locks meanwhile, so this can run from cron.\n\n"
    "Example: holdfast prune --keep 30d",
    {},
    options,
    run};

}  // namespace holdfast::cli
