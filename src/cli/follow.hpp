#pragma once

#include "cli/context.hpp"
#include "holdfast/audit.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace holdfast::cli {

/// Reads the events of all matching locks as they come. Every event once, those of one lock in order.
class Follower {
public:
    /// `name` follows that lock alone; otherwise every lock whose name matches `pattern`.
    Follower(std::optional<LockName> name, std::string pattern);

    /// Takes what is there now as seen.
    [[nodiscard]] Result<void> start(Store& store, Deadline deadline);
    /// This event is known already.
    void seen(const AuditEvent& event);
    /// The events since the last look, oldest first.
    [[nodiscard]] Result<std::vector<AuditEvent>> look(Store& store, Deadline deadline);

    [[nodiscard]] bool matches(const LockName& name) const;

private:
    [[nodiscard]] ListQuery query() const;

    std::optional<LockName> name_;
    std::string pattern_;
    std::map<LockName, std::uint64_t> last_seq_{};
    std::optional<Instant> newest_{};  ///< By the store's clock.
    unsigned looks_ = 0;
};

/// Prints events until a signal comes or nobody reads any more. `first` are those to begin with.
[[nodiscard]] Result<int> follow(Context& context, Follower& follower, const std::vector<AuditEvent>& first);

/// Prints one event in the way that --json asks for.
void print_event(Output& out, const AuditEvent& event);

}  // namespace holdfast::cli
