#pragma once

#include "cli/context.hpp"
#include "cli/grant.hpp"
#include "cli/join.hpp"
#include "cli/lease_environment.hpp"
#include "client/policy.hpp"
#include "holdfast/hold.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <vector>

/// The locks of `holdfast run`: which of them are joined, which are taken, and what the command is told of them.
namespace holdfast::cli {

struct HeldLease;

/// What is asked for, checked, before any store is touched.
struct Plan {
    Holder holder;                     ///< The process that the caller waits for.
    std::string operation{};           ///< What is done under the locks.
    std::vector<LockName> names;       ///< Each once.
    std::vector<client::Terms> terms;  ///< One for each name.
    std::map<std::string, std::string> meta{};
    std::chrono::milliseconds grace{0};
    /// The store of the locks, unless it is that of the settings; then the command is told nothing of a store.
    std::string store_url{};
    /// What else has to be done under the leases before the command begins.
    std::function<Result<void>(const std::vector<HeldLease>&, Store&)> before_command{};
};

/// What happens while the command waits for its locks.
struct WaitHooks {
    std::stop_token cancel;
    std::function<void(const Error& conflict, Store& store, const LockName& name)> blocked;
};

using JoinedLeases = std::vector<client::JoinedLease>;

/// The locks of the plan that commands around this one hold, on each of `stores`, in whatever order they are named.
[[nodiscard]] Result<JoinedLeases> join_outer(Context& context, const Plan& plan, const std::vector<Store*>& stores,
                                              const std::vector<InheritedLease>& inherited);

/// How long the shortest of the leases lasts that the command will run under.
[[nodiscard]] std::chrono::milliseconds shortest_lease(const Plan& plan, const std::vector<Store*>& stores,
                                                       const JoinedLeases& joined);

/// Keeps what is joined and takes the rest. The joined ones are the first of the group.
[[nodiscard]] Result<HoldGroup> take(const Context& context, const Plan& plan, const std::vector<Store*>& stores,
                                     JoinedLeases joined, const WaitHooks& hooks);

/// A lease that the command runs under.
struct HeldLease {
    InheritedLease lease;
    Joined joined = Joined::no;
};

/// All of them: by name, then by store, as the command line has them. The first `joined` holds of the group are joined.
[[nodiscard]] std::vector<HeldLease> leases_of(const HoldGroup& group, std::size_t joined, const Plan& plan,
                                               const std::vector<Store*>& stores);

/// What the child is told: its leases, and those of the commands around it that are on other locks.
[[nodiscard]] std::vector<InheritedLease> leases_for_child(const std::vector<HeldLease>& held,
                                                           const std::vector<InheritedLease>& inherited);

/// `--grace`, checked; a third of the lease by default. In run.cpp, with the rest of the command.
[[nodiscard]] Result<std::chrono::milliseconds> grace_for(const Context& context,
                                                          std::chrono::milliseconds shortest_ttl);
/// Takes the locks of `plan` and runs the command line after `--` under them, in a chain of two processes.
[[nodiscard]] Result<int> run_planned(Context& context, Plan plan);

namespace opt {
inline constexpr Option grace{{"grace", Takes::one, "5s"},
                              '\0',
                              "D",
                              "Between SIGTERM and SIGKILL when the lease runs out; at most a third of the ttl by "
                              "default."};
inline constexpr Option leave_behind{
    {"leave-behind"},
    '\0',
    "",
    "Leave running what outlives CMD by the grace, for commands that start daemons; the "
    "lock then runs out by itself."};
}  // namespace opt

}  // namespace holdfast::cli
