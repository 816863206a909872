#pragma once

#include "cli/context.hpp"
#include "client/event_reader.hpp"
#include "holdfast/audit.hpp"

#include <optional>
#include <string>

namespace holdfast::cli {

/// Reads the events of all matching locks as they come. Every event once, those of one lock in order.
class Follower {
public:
    /// `name` follows that lock alone; otherwise every lock whose name matches `pattern`.
    Follower(std::optional<LockName> name, std::string pattern);

    /// Skips all events that exist now.
    [[nodiscard]] Result<void> start(Store& store, Deadline deadline);
    /// This event is known already.
    void seen(const AuditEvent& event) { reader_.has_read(event); }
    /// Events since the last look, those of one lock in order.
    [[nodiscard]] Result<std::vector<AuditEvent>> look(Store& store, Deadline deadline);

    [[nodiscard]] bool matches(const LockName& name) const;

private:
    std::optional<LockName> name_;
    std::string pattern_;
    client::EventReader reader_{};
};

/// Prints events until a signal arrives or the reader is gone. `first` are those to begin with.
[[nodiscard]] Result<int> follow(Context& context, Follower& follower, const std::vector<AuditEvent>& first);

/// Prints one event in the way that --json asks for.
void print_event(Output& out, const AuditEvent& event);

}  // namespace holdfast::cli
