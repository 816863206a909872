#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/pattern.hpp"
#include "cli/report.hpp"
#include "cli/show.hpp"
#include "client/usual_hold.hpp"
#include "json/error.hpp"
#include "json/lock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace holdfast::cli {
namespace {

constexpr Option all{{"all", Takes::nothing, "", "", From::environment},
                     '\0',
                     "",
                     "Also locks that are free, and leases that ran out long ago."};

Result<int> show_one(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    auto status = context.inspect(*name);
    if (!status && status.error().code == Errc::record_corrupt) {
        // So that the hint can name the lock.
        LockStatus unreadable{.name = *name};
        unreadable.state = LockState::unreadable;
        unreadable.as_of = context.clock.wall();
        status.error().holder = std::make_shared<const LockStatus>(std::move(unreadable));
    }
    if (!status) return std::unexpected(status.error());
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const auto usual = client::usual_hold(**store, *status, context.soon());
    if (context.out.style().json) {
        context.out.document(json::lock_in_use(*status, *context.info(), usual).done());
    } else {
        show_lock(context.out, *status, *context.info(), usual);
    }
    return 0;
}

/// Locks that cannot be read do not hide the others, but they are an error.
std::optional<Error> unreadable_among(const std::vector<LockStatus>& locks) {
    std::vector<std::string> names;
    std::optional<Error> error;
    for (const LockStatus& status : locks) {
        if (status.state != LockState::unreadable) continue;
        names.push_back(printable(status.name.text()));
        if (!error) error = Error{Errc::record_corrupt, "", std::make_shared<const LockStatus>(status)};
    }
    if (error)
        error->message = fmt::format("{} cannot be read, and stay{} blocked until repaired", fmt::join(names, ", "),
                                     names.size() == 1 ? "s" : "");
    return error;
}

Result<int> show_several(Context& context, const std::string& pattern) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const bool everything = context.settings.on(all);
    auto locks = (*store)->list({.prefix = prefix_of(pattern), .with_free = everything, .with_unreadable = true},
                                context.soon());
    if (!locks) return std::unexpected(locks.error());
    std::erase_if(*locks, [&](const LockStatus& status) { return !matches(pattern, status.name); });
    const auto hidden = everything ? 0 : std::erase_if(*locks, ran_out_long_ago);
    if (!context.out.style().json) {
        show_locks(context.out, *locks);
        note_stale(context.out, context.info());
        if (hidden > 0)
            context.out.note(fmt::format("{} more ran out over a day ago; status --all shows {}", hidden,
                                         hidden == 1 ? "it" : "them"));
    }
    const auto error = unreadable_among(*locks);
    if (context.out.style().json) {
        json::Object document = json::locks(*locks, *context.info());
        if (error)
            document.set("error", json::error_body(*error, hint_for(*error, &context.settings), context.info()).done());
        context.out.document(document.done());
    } else if (error) {
        report(*error, context.out, context.info(), &context.settings);
    }
    return error ? row_of(error->code).exit_status : 0;
}

Result<int> run(Context& context) {
    if (context.line.words.empty()) return show_several(context, "");
    const std::string& word = context.line.words.front();
    return is_pattern(word) ? show_several(context, word) : show_one(context);
}

constexpr std::array words{Word{"NAME", Word::Need::optional}};
constexpr std::array options{all};

}  // namespace

constinit const Command status_command{
    "status",
    "ls",
    "Show one lock, or all that are held",
    "Shows who holds the lock, since when, for what, until when, and how long it is "
    "usually held. Without NAME, a line for each lock with a lease that is held, or that "
    "ran out in the last 24 hours. NAME can be a pattern, in which * and ? stand "
    "for any letters: \"migrate/*\". "
    "Never writes, and a lock that was never used is free.",
    words,
    options,
    run};

}  // namespace holdfast::cli
