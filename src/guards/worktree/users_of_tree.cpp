#include "guards/worktree/users_of_tree.hpp"

#include "base/fd.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/restore_copy.hpp"
#include "guards/worktree/walker.hpp"
#include "values/small_file.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

/// Whether the link of /proc leads into `tree`. A removed file has " (deleted)" behind its path.
bool leads_into(int process, const std::string& link, const std::string& tree) {
    const auto target = target_of(process, link);
    return target && is_at_or_beneath(*target, tree);
}

bool has_open(int process, const std::string& tree) {
    const auto folder = open_folder_at(process, "fd", "fd");
    if (!folder) return false;
    bool found = false;
    const auto listed = for_each_name(folder->get(), "fd", [&](const std::string& name, unsigned char) {
        found = found || leads_into(folder->get(), name, tree);
    });
    return found && listed;
}

bool uses(const std::string& process_path, const std::string& tree) {
    const base::Fd process(open(process_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!process) return false;
    if (leads_into(process.get(), "cwd", tree) || leads_into(process.get(), "exe", tree) ||
        has_open(process.get(), tree))
        return true;
    const auto maps = small_file(process_path + "/maps");
    return maps && maps->find(" " + tree + "/") != std::string::npos;
}

}  // namespace

std::vector<std::string> users_of_tree(const std::string& tree) {
    std::vector<std::string> users;
    const auto processes = open_folder("/proc");
    if (!processes) return users;
    const auto names = names_in(processes->get(), "/proc");
    if (!names) return users;
    const std::string self = std::to_string(getpid());
    for (const std::string& name : *names) {
        if (name == self || name.find_first_not_of("0123456789") != std::string::npos) continue;
        const std::string path = "/proc/" + name;
        if (!uses(path, tree)) continue;
        std::string command = small_file(path + "/comm").value_or("");
        while (command.ends_with('\n')) command.pop_back();
        users.push_back(fmt::format("{} ({})", name, printable(command)));
    }
    return users;
}

}  // namespace holdfast::guards::worktree
