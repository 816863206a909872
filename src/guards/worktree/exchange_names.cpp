#include "guards/worktree/exchange_names.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/exchange.hpp"
#include "guards/worktree/files.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <ranges>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr auto plan_file = "names";
constexpr std::size_t longest_plan = std::size_t{1} << 30;

/// One name in the three folders.
struct Places {
    Places(const NameFolders& folders, const std::string& name)
        : live{folders.live, name, name}, fresh{folders.fresh, name, name}, spare{folders.spare, name, name} {}
    NamedPlace live;
    NamedPlace fresh;
    NamedPlace spare;
};

std::unexpected<Error> failed(int error, const std::string& name) {
    return std::unexpected(base::os_error(error, "exchange " + printable(name)));
}

/// 0, or errno. Nothing to move, or something in the way that was made meanwhile: done.
int move_if_there(const NamedPlace& from, const NamedPlace& to) {
    const int error = move_to_free_name(from, to);
    return error == ENOENT || error == EEXIST ? 0 : error;
}

/// Brings `step` to its end, from whatever state a dead process left it in.
Result<void> do_step(const NameFolders& folders, const NameStep& step) {
    const Places at(folders, step.name);
    if (step.inode == 0) {
        const int error = move_if_there(at.live, at.fresh);
        return error == 0 ? Result<void>() : failed(error, step.name);
    }
    const auto there = inode_at(at.live);
    if (!there) return std::unexpected(there.error());
    if (*there != step.inode)
        if (const int error = put_in_place(at.live, at.fresh, at.spare); error != 0) return failed(error, step.name);
    const int error = move_if_there(at.spare, at.fresh);
    return error == 0 ? Result<void>() : failed(error, step.name);
}

Result<void> undo_step(const NameFolders& folders, const NameStep& step) {
    const Places at(folders, step.name);
    const auto there = inode_at(at.live);
    const auto moved = inode_at(at.spare);
    if (!there) return std::unexpected(there.error());
    if (!moved) return std::unexpected(moved.error());
    int error = 0;
    if (*moved) {
        if (*there == step.inode) error = move_if_there(at.live, at.fresh);
        if (error == 0) error = move_if_there(at.spare, at.live);
    } else if (step.inode == 0) {
        error = move_if_there(at.fresh, at.live);
    } else if (*there == step.inode) {
        const auto old = inode_at(at.fresh);
        if (!old) return std::unexpected(old.error());
        error = *old ? put_in_place(at.live, at.fresh, at.spare) : move_if_there(at.live, at.fresh);
        if (error == 0) error = move_if_there(at.spare, at.fresh);
    }
    return error == 0 ? Result<void>() : failed(error, step.name);
}

Result<void> sync_all(const NameFolders& folders) {
    for (const int folder : {folders.live, folders.fresh, folders.spare})
        if (fsync(folder) != 0)
            return fail(
                Errc::outcome_unknown,
                "the names were exchanged, and nobody knows whether that is on the disk: " + base::os_message(errno));
    return {};
}

}  // namespace

Result<std::vector<NameStep>> plan_names(const NameFolders& folders, const std::set<std::string>& stays) {
    const auto live = names_in(folders.live, "the worktree");
    const auto fresh = names_in(folders.fresh, "the new tree");
    if (!live) return std::unexpected(live.error());
    if (!fresh) return std::unexpected(fresh.error());
    std::set<std::string> names(fresh->begin(), fresh->end());
    names.insert(live->begin(), live->end());
    std::vector<NameStep> plan;
    for (const std::string& name : names) {
        if (stays.contains(name)) continue;
        if (is_mount_point(folders.live, name))
            return fail(Errc::store_unsafe,
                        fmt::format("{} is a mount point, which cannot be replaced, and nothing was changed; leave it "
                                    "out, or restore into a new worktree",
                                    printable(name)));
        const auto inode = inode_at({folders.fresh, name, name});
        if (!inode) return std::unexpected(inode.error());
        plan.push_back({name, inode->value_or(0)});
    }
    return plan;
}

Result<void> write_name_plan(int folder, const std::vector<NameStep>& plan) {
    std::string text;
    // A name may have every byte but a slash and the one that ends it.
    for (const NameStep& step : plan) text += fmt::format("{}/{}", step.inode, step.name) + '\0';
    return write_text(folder, plan_file, text);
}

Result<std::vector<NameStep>> read_name_plan(int folder) {
    const auto text = read_text(folder, plan_file, longest_plan);
    if (!text) return std::unexpected(text.error());
    const auto damaged = [] { return fail(Errc::record_corrupt, "the plan of a restore is damaged"); };
    if (!*text) return damaged();
    std::vector<NameStep> plan;
    for (std::size_t at = 0; at < (*text)->size();) {
        const std::size_t end = (*text)->find('\0', at);
        const std::size_t slash = (*text)->find('/', at);
        if (end == std::string::npos || slash >= end) return damaged();
        NameStep step;
        const char* const digits = (*text)->data() + at;
        if (std::from_chars(digits, (*text)->data() + slash, step.inode).ptr != (*text)->data() + slash)
            return damaged();
        step.name = (*text)->substr(slash + 1, end - slash - 1);
        if (step.name.empty() || step.name == "." || step.name == ".." || step.name.find('/') != std::string::npos)
            return damaged();
        plan.push_back(std::move(step));
        at = end + 1;
    }
    return plan;
}

Result<void> exchange_names(const NameFolders& folders, const std::vector<NameStep>& plan) {
    for (std::size_t i = 0; i < plan.size(); ++i) {
        const auto done = do_step(folders, plan[i]);
        if (done) continue;
        // Never a mixture: what was exchanged goes back.
        for (const NameStep& step : plan | std::views::take(i + 1) | std::views::reverse)
            if (const auto undone = undo_step(folders, step); !undone)
                return fail(Errc::outcome_unknown,
                            fmt::format("the exchange stopped in between, and holdfast worktree doctor --fix continues "
                                        "it: {}; {}",
                                        done.error().message, undone.error().message));
        if (auto synced = sync_all(folders); !synced) return synced;
        return std::unexpected(done.error());
    }
    return sync_all(folders);
}

}  // namespace holdfast::guards::worktree
