#pragma once

#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

/// Finding the processes that a child has started, and ending them.
namespace holdfast::guards::run {

struct Relative {
    pid_t pid = 0;
    std::string name;  ///< As the kernel knows it.
};

/// Whether processes can be found at all, which needs /proc. Without it the functions below find nobody.
[[nodiscard]] bool processes_are_visible();

/// Whether this process has any child, dead but unreaped ones included. Needs no /proc.
[[nodiscard]] bool has_children();

/// The children that this process has now, dead but unreaped ones included.
[[nodiscard]] std::set<pid_t> children();

/// All living descendants of this process, wherever in the tree, but `except` and what those started.
/// Needs this process to be a subreaper or PID 1, otherwise those whose parent has ended are missed.
[[nodiscard]] std::vector<Relative> descendants(const std::set<pid_t>& except);

/// Processes whose environment says that they belong to the run `mark`. For a watchdog, whose relatives they are not.
[[nodiscard]] std::vector<Relative> marked_with(std::string_view mark);

/// Whether any process, dead but unreaped ones included, is in the group.
[[nodiscard]] bool group_exists(pid_t group);

}  // namespace holdfast::guards::run
