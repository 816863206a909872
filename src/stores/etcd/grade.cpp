#include "stores/etcd/grade.hpp"

#include "base/real_clock.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// One node, as it answered.
struct Node {
    std::string name;
    NodeStatus status{};
    std::optional<milliseconds> ahead{};  ///< Of this host's clock, less what was lost by cutting to seconds.
};

/// The first versions that never read stale data after a pause; see `Txn::order_by_log`.
bool is_older_than_3_4_42(std::string_view version) {
    int part[3] = {0, 0, 0};
    const char* at = version.data();
    const char* const end = at + version.size();
    for (int& number : part) {
        at = std::from_chars(at, end, number).ptr;
        if (at != end) ++at;
    }
    return std::tie(part[0], part[1], part[2]) < std::tuple(3, 4, 42);
}

Finding clocks(const std::vector<Node>& nodes, milliseconds margin) {
    std::vector<milliseconds> ahead;
    for (const Node& node : nodes)
        if (node.ahead) ahead.push_back(*node.ahead);
    if (ahead.empty()) return {"clocks", false, "no node says what time it is"};
    const auto [least, most] = std::ranges::minmax(ahead);
    // Whole seconds alone make a difference of up to one.
    const milliseconds certain = std::max(most - least - std::chrono::seconds{1}, milliseconds{0});
    const bool ok = certain <= margin;
    return {"clocks", ok,
            fmt::format("the clocks of {} {} differ by {}{} (clock_margin is {})", ahead.size(),
                        ahead.size() == 1 ? "node" : "nodes", certain > milliseconds{0} ? "at least " : "less than ",
                        certain > milliseconds{0} ? to_words(certain) : "1 s", to_words(margin))};
}

Finding alarms(Cluster& cluster, base::CallBudget& budget) {
    const auto answer = cluster.call(method::alarm, no_fields, budget);
    if (!answer && answer.error().code == Errc::denied) return {"alarms", true, "this user may not ask for them"};
    if (!answer) return {"alarms", false, answer.error().message};
    const auto raised = read_alarms(answer->message);
    return {"alarms", raised.empty(), raised.empty() ? "none" : fmt::format("{}", fmt::join(raised, ", "))};
}

Finding format_of(Remote& remote, base::CallBudget& budget) {
    const std::vector<Wanted> nothing;
    BatchView view(remote.keys(), nothing);
    if (const auto looked = remote.look(view, budget); !looked) return {"format", false, looked.error().message};
    const auto exists = remote.exists(view);
    if (!exists) return {"format", false, exists.error().message};
    if (!*exists) return {"format", true, "not created yet; the first use will"};
    return {"format", true,
            fmt::format("{}{}", remote.format(),
                        remote.is_old() ? fmt::format("; the first change makes it {}", our_format) : "")};
}

/// Whether the cluster would accept a change now: sends a transaction whose rights etcd checks, and whose comparison
/// never holds.
std::vector<Finding> txn(Remote& remote, base::CallBudget& budget) {
    Txn txn;
    // No revision is ever that high.
    txn.if_unchanged(remote.keys().meta(), std::numeric_limits<Revision>::max());
    txn.put(remote.keys().meta(), "");
    txn.remove_all(remote.keys().records(""));
    txn.remove_all(remote.keys().all_events());
    const auto answer = remote.read(txn, budget);
    const bool denied = !answer && answer.error().code == Errc::denied;
    std::vector<Finding> findings{
        {"rights", !denied, denied ? answer.error().message : "this user may change all keys below the prefix"}};
    if (!denied) findings.push_back({"writes", answer.has_value(), answer ? "accepted" : answer.error().message});
    return findings;
}

}  // namespace

Result<base::Grading> grading_of(Cluster& cluster, base::CallBudget& budget) {
    const auto answer = cluster.call(method::member_list, no_fields, budget);
    if (!answer) {
        Error error = answer.error();
        if (error.code == Errc::outcome_unknown) error.code = Errc::store_unavailable;
        return std::unexpected(std::move(error));
    }
    const std::size_t members = count_members(answer->message);
    base::Grading grading;
    grading.explain(
        members > 1
            ? fmt::format("a cluster of {}: a change is acknowledged when {} of them have it on disk", members,
                          members / 2 + 1)
            : "a single node: a change is acknowledged when it is on its disk, and there is no other to take over");
    return grading;
}

std::vector<Finding> examine_cluster(Remote& remote, const Clock& clock, Deadline deadline) {
    Cluster& cluster = remote.cluster();
    std::vector<Finding> findings;
    std::vector<Node> nodes;
    base::CallBudget budget(clock, deadline);
    for (std::size_t i = 0; i < cluster.address().endpoints.size(); ++i) {
        const std::string& name = cluster.address().endpoints[i].name;
        const auto answer = cluster.call_one(i, method::status, no_fields, budget.left());
        findings.push_back({"endpoint " + name, answer.has_value(), answer ? "answers" : answer.error().message});
        if (!answer) continue;
        Node node{name, read_status(answer->message), std::nullopt};
        if (const auto date = cluster.date_of(i, budget.left())) node.ahead = *date - base::real_clock().wall();
        nodes.push_back(std::move(node));
    }
    for (const Node& node : nodes) {
        findings.push_back(
            {"version of " + node.name, true,
             node.status.version + (is_older_than_3_4_42(node.status.version)
                                        ? ": its reads can be stale after a pause and its leases can end "
                                          "early; Holdfast uses no etcd lease and decides in transactions"
                                        : "")});
        findings.push_back({"leader of " + node.name, node.status.has_leader,
                            node.status.has_leader ? "there is one" : "none: a majority of the cluster is missing"});
        findings.push_back({"database of " + node.name, node.status.errors.empty(),
                            fmt::format("{} MiB {}", node.status.db_size >> 20U, fmt::join(node.status.errors, ", "))});
    }
    findings.push_back(clocks(nodes, remote.node_clock().margin()));
    findings.push_back(alarms(cluster, budget));
    std::ranges::move(txn(remote, budget), std::back_inserter(findings));
    findings.push_back(format_of(remote, budget));
    return findings;
}

}  // namespace holdfast::stores::etcd
