// `holdfast worktree snapshot`.
#include "cli/command.hpp"
#include "cli/progress_line.hpp"
#include "cli/worktree_lock.hpp"
#include "guards/worktree/snapshot.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr Option message_option{
    {"message", Takes::one, "", "", From::environment}, 'm', "T", "What this state is, for whoever looks later."};
constexpr Option consistency_option{
    {"consistency", Takes::one, "quiesced", "quiesced|best_effort", From::environment},
    '\0',
    "quiesced|best_effort",
    "Proved to be of one moment, or refused; or whatever could be read, with a warning."};
constexpr Option freeze_option{{"freeze", Takes::one, "", "", From::environment},
                               '\0',
                               "CMD",
                               "Run before the copy, to bring the writers to rest."};
constexpr Option thaw_option{{"thaw", Takes::one, "", "", From::environment},
                             '\0',
                             "CMD",
                             "Run after the copy, whatever becomes of this process."};
constexpr Option grace_option{
    {"grace", Takes::one, "5s", "", From::environment},
    '\0',
    "D",
    "How long after this process was stopped the thaw runs; after its death it runs at once."};

/// What the caller watches: on a terminal, and nowhere else.
class SnapshotProgress {
public:
    SnapshotProgress(const Context& context) : line_(context.out.style()), clock_(context.clock) {}

    void show(const trees::Progress& progress) {
        const Boottime now = clock_.boottime();
        if (shown_ && now - *shown_ < milliseconds{100}) return;
        if (!shown_) began_ = now;
        shown_ = now;
        const auto took = std::max(now - began_, milliseconds{1});
        constexpr std::uint64_t mib = std::uint64_t{1} << 20;
        line_.show(fmt::format("{} {}{} entries, {} MiB, {} MiB/s", progress.step, bar(progress), progress.entries,
                               progress.bytes_read / mib,
                               progress.bytes_read * 1000 / mib / static_cast<std::uint64_t>(took.count())));
    }

private:
    static std::string bar(const trees::Progress& progress) {
        if (progress.entries_before == 0) return "";
        constexpr std::uint64_t width = 24;
        const auto done = std::min(progress.entries * width / progress.entries_before, width);
        return fmt::format("[{:#<{}}{:.<{}}] ", "", done, "", width - done);
    }
    ProgressLine line_;
    const Clock& clock_;
    Boottime began_{};
    std::optional<Boottime> shown_{};
};

Result<trees::SnapshotOptions> options_of(const Context& context) {
    trees::SnapshotOptions options;
    options.message = context.settings.text(message_option);
    const auto level = json::consistency_named(context.settings.text(consistency_option));
    if (!level) return std::unexpected(level.error());
    options.consistency = *level;
    options.actor = context.holder().text;
    const bool freezes = context.settings.given(freeze_option);
    if (freezes != context.settings.given(thaw_option)) return fail(Errc::usage, "--freeze and --thaw belong together");
    if (freezes) {
        const auto grace = context.settings.duration(grace_option);
        if (!grace) return std::unexpected(grace.error());
        options.freeze =
            trees::Freeze::Options{context.settings.text(freeze_option), context.settings.text(thaw_option),
                                   std::clamp(*grace, milliseconds{100}, milliseconds{600'000})};
    }
    return options;
}

int report(Context& context, const trees::Snapshot& taken) {
    const auto& descriptor = taken.descriptor;
    if (context.out.style().json) {
        json::Object document = json::snapshot_info(descriptor);
        document.set("unread_files", json::Value::number(taken.unread));
        context.out.document(document.done());
        return 0;
    }
    context.out.line(descriptor.snapshot_id);
    if (descriptor.is_shared)
        Output::warn(fmt::format("holdfast: warning: {} is shared, a high risk: nothing keeps its writers apart",
                                 printable(descriptor.worktree_id)));
    if (descriptor.consistency == json::Consistency::best_effort)
        Output::warn("holdfast: warning: best_effort: nobody has proved that all of it is from one moment");
    if (context.out.tells_success())
        context.out.note(
            fmt::format("{} files, {} not read again, {} MiB", descriptor.files, taken.unread, descriptor.bytes >> 20));
    return 0;
}

Result<int> run(Context& context) {
    auto options = options_of(context);
    if (!options) return std::unexpected(options.error());
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    SnapshotProgress progress(context);
    options->progress = [&](const trees::Progress& now) { progress.show(now); };
    const auto snapshot = [&]() -> Result<int> {
        const auto taken = trees::take_snapshot(*repository, row->worktree_id, *options);
        if (!taken) return std::unexpected(taken.error());
        return report(context, *taken);
    };
    if (row->is_shared)
        return without_worktree_lock([&](std::stop_token stop) {
            options->stop = std::move(stop);
            return snapshot();
        });
    return under_worktree_lock(context, *repository, *row, [&](const WorktreeLease& lease) {
        options->claim = lease.claim;
        options->store = &lease.store;
        options->stop = lease.stop;
        return snapshot();
    });
}

constexpr std::array options{message_option, consistency_option, freeze_option, thaw_option,  grace_option,
                             opt::worktree,  opt::ttl,           opt::wait,     opt::no_wait, opt::max_hold,
                             opt::operation, opt::holder,        opt::user,     opt::if_held};

}  // namespace

constinit const Command worktree_snapshot_command{
    "worktree snapshot",
    "",
    "Keep the state of a worktree",
    "Copies the worktree and proves that nothing in it moved meanwhile; otherwise it is refused with "
    "E_CONSISTENCY_UNAVAILABLE, and nothing of it is left. Files that did not change are hard-linked to the snapshot "
    "before, and not read again where their metadata proves it. Prints the id.\n\n"
    "In an exclusive worktree it takes the lock, or joins the lease of the worktree run around it, and publishes only "
    "as its current holder: a process that was stopped beyond its lease is refused with E_FENCING_MISMATCH.\n\n"
    "--consistency best_effort proves nothing, and says so in every output. --freeze and --thaw bring the writers to "
    "rest around the copy; the thaw runs also when this process is killed.\n\n"
    "Example: holdfast worktree snapshot -m \"before the upgrade\"",
    {},
    options,
    run};

}  // namespace holdfast::cli
