#pragma once

#include <functional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

/// Finding the processes that a child has started, and ending them.
namespace holdfast::guards::run {

struct Relative {
    pid_t pid = 0;
    std::string name;  ///< As the kernel knows it.
};

/// Whether processes can be found at all, which needs /proc. Without it the functions below find none.
[[nodiscard]] bool processes_are_visible();

/// Whether this process has any child, dead but unreaped ones included. Needs no /proc.
[[nodiscard]] bool has_children();

/// Whether a child has ended and was not waited for.
[[nodiscard]] bool has_dead_child();

/// The children that this process has now, dead but unreaped ones included.
[[nodiscard]] std::set<pid_t> children();

/// All living descendants of `root`, at any depth, except for `except` and their descendants.
/// `root` must be a subreaper or PID 1; otherwise descendants whose parent has ended are missed.
[[nodiscard]] std::vector<Relative> descendants(pid_t root, const std::set<pid_t>& except);

/// The processes of a command: all that descend from one process, and the command's group, which is all that can be
/// found without /proc.
class Family {
public:
    /// `notice` is told in words of a process that cannot be ended.
    explicit Family(std::function<void(const std::string&)> notice);

    /// They descend from `root`, but not from its children `strangers`.
    void look_below(pid_t root, std::set<pid_t> strangers);
    /// The command's process group; 0 when its number may mean a stranger.
    void set_group(pid_t group) { group_ = group; }

    void signal(int signal) const;
    /// Tells them to end. A stopped one goes on, because only then it hears of it.
    void tell_to_end();
    void kill();

    /// Whether those that left the group can be found.
    [[nodiscard]] bool is_visible() const { return visible_; }
    [[nodiscard]] std::vector<Relative> living() const { return descendants(root_, strangers_); }
    /// Whether a child of `root`, which must be this process, is left. Needs no /proc if there are no strangers.
    [[nodiscard]] bool is_left() const;
    /// Those that could not be ended: they became another user, by sudo or a setuid program.
    [[nodiscard]] const std::vector<Relative>& out_of_reach() const { return out_of_reach_; }
    [[nodiscard]] bool has_anybody_within_reach() const;
    /// Whether somebody is left, and none of them can be ended: other users, or nobody that /proc shows, because there
    /// is none or it hides other users (hidepid). True only after a kill that had time to work.
    [[nodiscard]] bool is_out_of_reach() const;
    /// Those that live; one without a pid if they cannot be named.
    [[nodiscard]] std::vector<Relative> left() const;

private:
    [[nodiscard]] std::vector<Relative> send(int signal) const;
    void end_with(int signal);

    const std::function<void(const std::string&)> notice_;
    const bool visible_;
    pid_t root_;
    std::set<pid_t> strangers_{};
    pid_t group_ = 0;
    std::vector<Relative> out_of_reach_{};
};

/// `sleep (pid 71), sh (pid 72)`.
[[nodiscard]] std::string names_of(const std::vector<Relative>& relatives);

}  // namespace holdfast::guards::run
