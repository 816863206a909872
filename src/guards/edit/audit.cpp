// The audit view of a project, told from the audit log of its locks.
#include "holdfast/edit.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast {
namespace {

std::optional<std::chrono::milliseconds> ttl_in(const AuditEvent& event) {
    const auto text = event.details.find("ttl_ms");
    if (text == event.details.end()) return std::nullopt;
    std::int64_t count = 0;
    const char* const end = text->second.data() + text->second.size();
    const auto [rest, error] = std::from_chars(text->second.data(), end, count);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return std::chrono::milliseconds{count};
}

std::optional<Instant> expiry_in(const AuditEvent& event) {
    const auto text = event.details.find("expired_at");
    return text == event.details.end() ? std::nullopt : parse_time(text->second);
}

/// Follows the leases of one lock through its events, oldest first.
class Story {
public:
    explicit Story(ProjectLockType type) : type_(type) {}

    void add(const AuditEvent& event) {
        switch (event.kind) {
            case EventKind::acquired: return begin(event, "expired");
            case EventKind::stolen: return begin(event, event.details.contains("stale_since") ? "stolen" : "expired");
            case EventKind::transferred:
            case EventKind::override_approved: return begin(event, "transferred");
            case EventKind::renewed:
            case EventKind::revived: return extend(event);
            case EventKind::released: return end(event.at, "released");
            case EventKind::broken:
            case EventKind::repaired: return end(event.at, "broken");
            case EventKind::expired: return expire(expiry_in(event).value_or(event.at));
            default: return;
        }
    }

    /// `lock` knows what no event tells: the longest hold, and how long an approved request gives.
    std::vector<ProjectLease> told(const LockStatus& lock) {
        if (is_open()) {
            ProjectLease& last = leases_.back();
            if (lock.lease && lock.lease->lock_id == last.lock_id) last.expires_at = lock.lease->expires_at;
            if (last.expires_at <= lock.as_of) expire(last.expires_at);
        }
        std::ranges::reverse(leases_);
        return std::move(leases_);
    }

private:
    [[nodiscard]] bool is_open() const { return !leases_.empty() && !leases_.back().released_at; }

    void begin(const AuditEvent& event, std::string_view end_of_former) {
        // Handed over or approved, a lease that says no time of its own goes on with that of the former.
        const auto inherited = leases_.empty() ? event.at : leases_.back().expires_at;
        const Instant ended_at = expiry_in(event).value_or(event.at);
        if (end_of_former == "expired") expire(ended_at);
        end(ended_at, end_of_former);
        ProjectLease lease{.type = type_, .lock_id = event.lock_id, .token = event.token};
        const Screen screen = Screen::of(event.holder);
        lease.dashboard = screen.dashboard;
        lease.user = screen.user;
        lease.acquired_at = event.at;
        const auto ttl = ttl_in(event);
        lease.expires_at = ttl ? event.at + *ttl : inherited;
        leases_.push_back(std::move(lease));
    }

    void extend(const AuditEvent& event) {
        const auto ttl = ttl_in(event);
        if (is_open() && ttl) leases_.back().expires_at = event.at + *ttl;
    }

    void expire(Instant at) {
        if (is_open()) leases_.back().expires_at = at;
        end(at, "expired");
    }

    void end(Instant at, std::string_view how) {
        if (!is_open()) return;
        leases_.back().released_at = at;
        leases_.back().ended_by = how;
    }

    ProjectLockType type_;
    std::vector<ProjectLease> leases_{};
};

}  // namespace

std::string_view name_of(ProjectLockType type) {
    switch (type) {
        case ProjectLockType::project: return "project";
        case ProjectLockType::propagation: return "propagation";
        case ProjectLockType::validation: break;
    }
    return "validation";
}

std::vector<ProjectLease> leases_in(const std::vector<AuditEvent>& events, ProjectLockType type,
                                    const LockStatus& lock) {
    Story story(type);
    for (const AuditEvent& event : events) story.add(event);
    return story.told(lock);
}

}  // namespace holdfast
