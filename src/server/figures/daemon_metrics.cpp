#include "server/figures/daemon_metrics.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace holdfast::server {
namespace {

using Kind = MetricRow::Kind;

constexpr std::array call_buckets{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0};
constexpr std::array hold_buckets{0.01, 0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0};
constexpr std::array size_buckets{1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0};

constexpr std::array table{
    MetricRow{"holdfast_build_info", Kind::gauge, "Always 1; the version is a label.", {}},
    MetricRow{"holdfast_requests_total",
              Kind::counter,
              "Requests of the protocol that this daemon sent to the store, by kind and outcome.",
              {}},
    MetricRow{"holdfast_acquires_total",
              Kind::counter,
              "Acquires that this daemon sent to the store: granted, stolen (granted after a lease that ran out), "
              "queued, or the code of the refusal.",
              {}},
    MetricRow{"holdfast_acquire_wait_seconds", Kind::histogram,
              "From the request to the grant, of acquires that were granted.", hold_buckets},
    MetricRow{"holdfast_http_requests_total", Kind::counter, "Answers, by route and status.", {}},
    MetricRow{"holdfast_http_request_seconds", Kind::histogram, "Time from a request to its answer, by route.",
              call_buckets},
    MetricRow{"holdfast_connections", Kind::gauge, "Open connections.", {}},
    MetricRow{"holdfast_event_streams", Kind::gauge, "Open event streams.", {}},
    MetricRow{"holdfast_waiting_requests", Kind::gauge, "Requests that this daemon holds until they are granted.", {}},
    MetricRow{"holdfast_queue_length", Kind::gauge, "Requests that wait for the next batch.", {}},
    MetricRow{"holdfast_queue_refused_total", Kind::counter, "Requests that were refused because too many wait.", {}},
    MetricRow{"holdfast_batch_size", Kind::histogram, "Requests in one call of the store.", size_buckets},
    MetricRow{"holdfast_store_call_seconds", Kind::histogram, "How long the store took for a batch.", call_buckets},
    MetricRow{"holdfast_store_errors_total", Kind::counter, "Calls of the store that failed as a whole, by code.", {}},
    MetricRow{"holdfast_store_up", Kind::gauge, "1 if the store could be read at the last look.", {}},
    MetricRow{"holdfast_store_grade", Kind::gauge, "1 for what the store promises: A, B or C.", {}},
    MetricRow{"holdfast_store_look_seconds", Kind::gauge, "How long the last look at all locks took.", {}},
    MetricRow{"holdfast_store_clock_difference_seconds",
              Kind::gauge,
              "The clock of the store minus that of this host, as exactly as a reading takes.",
              {}},
    MetricRow{"holdfast_locks", Kind::gauge, "Locks that are held, expired or unreadable.", {}},
    MetricRow{"holdfast_waiters", Kind::gauge, "Live places in the queues of all locks.", {}},
    MetricRow{"holdfast_longest_queue_seconds",
              Kind::gauge,
              "The longest time for which a lock has had waiters and went to none of them.",
              {}},
    MetricRow{"holdfast_least_renew_margin_ratio",
              Kind::gauge,
              "Of all leases that are renewed: the least part of its ttl that one had left when it was looked at.",
              {}},
    MetricRow{"holdfast_lock_held_seconds", Kind::gauge, "How long a lock has been held; some locks only.", {}},
    MetricRow{"holdfast_lock_renew_margin_seconds",
              Kind::gauge,
              "How long its lease goes on unless it is renewed; the same locks.",
              {}},
    MetricRow{"holdfast_hold_seconds", Kind::histogram, "How long locks were held, by how it ended.", hold_buckets},
    MetricRow{"holdfast_events_total", Kind::counter, "Events of the store, whoever caused them.", {}},
    MetricRow{"holdfast_losses_total",
              Kind::counter,
              "Leases that ended against their holder's will: expired, broken or overridden.",
              {}},
    MetricRow{"holdfast_steals_total", Kind::counter, "Grants after a lease that ran out.", {}},
    MetricRow{"holdfast_breaks_total", Kind::counter, "Leases that an operator ended.", {}},
    MetricRow{"holdfast_fenced_writes_total", Kind::counter, "Writes that a protected resource refused.", {}},
    MetricRow{"holdfast_break_glass_total", Kind::counter, "Admins that approved their own question.", {}},
    MetricRow{"holdfast_ended_leases_total", Kind::counter, "Leases that this daemon announced as expired.", {}},
    MetricRow{"holdfast_pruned_events_total", Kind::counter, "Old events that this daemon removed.", {}},
    MetricRow{"holdfast_metrics_dropped_total", Kind::counter, "Figures left out because there are too many.", {}},
};

/// Locks that are remembered from one event, or one look, to the next.
constexpr std::size_t most_remembered = 100'000;

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

struct Names {
    std::string_view operator()(const Acquire&) const { return "acquire"; }
    std::string_view operator()(const Renew&) const { return "renew"; }
    std::string_view operator()(const Release&) const { return "release"; }
    std::string_view operator()(const Cancel&) const { return "cancel"; }
    std::string_view operator()(const Transfer&) const { return "transfer"; }
    std::string_view operator()(const Break&) const { return "unlock"; }
    std::string_view operator()(const Check&) const { return "check"; }
    std::string_view operator()(const Ask&) const { return "override_request"; }
    std::string_view operator()(const Answer&) const { return "override_answer"; }
    std::string_view operator()(const Prune&) const { return "prune"; }
    std::string_view operator()(const Expire&) const { return "expire"; }
    std::string_view operator()(const Repair&) const { return "repair"; }
    std::string_view operator()(const ReportFenced&) const { return "fenced"; }
};

std::string_view outcome_of(const Reply& reply) { return reply ? "granted" : row_of(reply.error().code).name; }

std::string_view acquire_outcome(const Acquire& request, const Reply& reply) {
    if (reply) return reply->stolen_from ? "stolen" : "granted";
    if (request.ticket && reply.error().code == Errc::lock_conflict) return "queued";
    return row_of(reply.error().code).name;
}

bool begins_hold(EventKind kind) {
    return kind == EventKind::acquired || kind == EventKind::stolen || kind == EventKind::transferred ||
           kind == EventKind::override_approved;
}

/// How an event ended the lease that was there; absent if it did not.
std::optional<std::string_view> ending_of(EventKind kind) {
    switch (kind) {
        case EventKind::released: return "released";
        case EventKind::expired:
        case EventKind::stolen: return "expired";
        case EventKind::broken: return "broken";
        case EventKind::transferred: return "transferred";
        case EventKind::override_approved: return "overridden";
        default: return std::nullopt;
    }
}

}  // namespace

std::span<const MetricRow> metric_table() { return table; }

DaemonMetrics::DaemonMetrics(std::string version, LockMetricsOptions options)
    : options_(std::move(options)), metrics_(table) {
    metrics_.set("holdfast_build_info", 1, {{"version", version}});
    // What is there from the beginning, so that an alert sees the first one as a rise.
    for (const char* name : {"holdfast_steals_total", "holdfast_breaks_total", "holdfast_fenced_writes_total",
                             "holdfast_break_glass_total", "holdfast_ended_leases_total",
                             "holdfast_pruned_events_total", "holdfast_queue_refused_total"})
        metrics_.add(name, 0);
    for (const char* cause : {"expired", "broken", "overridden"})
        metrics_.add("holdfast_losses_total", 0, {{"cause", cause}});
    for (const char* name : {"holdfast_queue_length", "holdfast_connections", "holdfast_event_streams",
                             "holdfast_waiting_requests", "holdfast_store_up"})
        metrics_.set(name, 0);
}

void DaemonMetrics::answered(std::string_view /*method*/, std::string_view route, int status,
                             std::chrono::microseconds time) {
    metrics_.add("holdfast_http_requests_total", 1, {{"route", route}, {"status", std::to_string(status)}});
    metrics_.observe("holdfast_http_request_seconds", seconds(time), {{"route", route}});
    if (route == "/v1/acquire" && status == 200) metrics_.observe("holdfast_acquire_wait_seconds", seconds(time));
}

void DaemonMetrics::applied(std::span<const Request> requests, const Result<std::vector<Reply>>& replies,
                            std::chrono::microseconds time) {
    metrics_.observe("holdfast_batch_size", static_cast<double>(requests.size()));
    metrics_.observe("holdfast_store_call_seconds", seconds(time));
    if (!replies) metrics_.add("holdfast_store_errors_total", 1, {{"code", row_of(replies.error().code).name}});
    // A batch has many requests and few kinds of outcomes.
    std::map<std::pair<std::string_view, std::string_view>, double> outcomes;
    std::map<std::string_view, double> acquires;
    const Reply failed = replies ? Reply(std::unexpected(Error{})) : Reply(std::unexpected(replies.error()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Reply& reply = replies ? (*replies)[i] : failed;
        ++outcomes[{std::visit(Names{}, requests[i]), outcome_of(reply)}];
        const auto* const acquire = std::get_if<Acquire>(&requests[i]);
        if (acquire != nullptr) ++acquires[acquire_outcome(*acquire, reply)];
    }
    for (const auto& [kind, count] : outcomes)
        metrics_.add("holdfast_requests_total", count, {{"op", kind.first}, {"outcome", kind.second}});
    for (const auto& [outcome, count] : acquires)
        metrics_.add("holdfast_acquires_total", count, {{"outcome", outcome}});
}

void DaemonMetrics::queued(std::size_t waiting) { metrics_.set("holdfast_queue_length", static_cast<double>(waiting)); }
void DaemonMetrics::refused_at_queue() { metrics_.add("holdfast_queue_refused_total"); }
void DaemonMetrics::connections(std::size_t open) { metrics_.set("holdfast_connections", static_cast<double>(open)); }
void DaemonMetrics::streams(std::size_t open) { metrics_.set("holdfast_event_streams", static_cast<double>(open)); }
void DaemonMetrics::waiters(std::size_t held) { metrics_.set("holdfast_waiting_requests", static_cast<double>(held)); }

void DaemonMetrics::read_event(const AuditEvent& event) {
    metrics_.add("holdfast_events_total", 1, {{"event", name_of(event.kind)}});
    const auto lost = [&](std::string_view cause) { metrics_.add("holdfast_losses_total", 1, {{"cause", cause}}); };
    switch (event.kind) {
        case EventKind::expired: lost("expired"); break;
        case EventKind::stolen:
            if (!was_announced(event.name)) lost("expired");
            metrics_.add("holdfast_steals_total");
            break;
        case EventKind::broken:
            lost("broken");
            metrics_.add("holdfast_breaks_total");
            break;
        case EventKind::override_approved:
            lost("overridden");
            if (event.details.contains("break_glass")) metrics_.add("holdfast_break_glass_total");
            break;
        case EventKind::fenced: metrics_.add("holdfast_fenced_writes_total"); break;
        default: break;
    }
    see_hold(event);
}

bool DaemonMetrics::was_announced(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    return announced_.contains(name);
}

void DaemonMetrics::see_hold(const AuditEvent& event) {
    const std::scoped_lock lock(mutex_);
    const auto begun = began_.find(event.name);
    if (const auto ending = ending_of(event.kind); ending && begun != began_.end()) {
        const auto held = std::max(event.at - begun->second, std::chrono::milliseconds{0});
        metrics_.observe("holdfast_hold_seconds", seconds(held), {{"end", *ending}});
        began_.erase(begun);
    }
    if (event.kind == EventKind::expired && announced_.size() < most_remembered) announced_.insert(event.name);
    if (!begins_hold(event.kind)) return;
    announced_.erase(event.name);
    if (began_.size() < most_remembered) began_.insert_or_assign(event.name, event.at);
}

void DaemonMetrics::look_begins() {
    const std::scoped_lock lock(mutex_);
    look_ = {};
}

void DaemonMetrics::looked_at(std::span<const LockStatus> locks, Instant host_time) {
    const std::scoped_lock lock(mutex_);
    for (const LockStatus& each : locks) see(each);
    const auto read = std::ranges::find_if(locks, [](const LockStatus& each) { return each.as_of != Instant{}; });
    if (read != locks.end()) metrics_.set("holdfast_store_clock_difference_seconds", seconds(read->as_of - host_time));
}

void DaemonMetrics::see(const LockStatus& lock) {
    if (lock.state == LockState::unreadable) ++look_.unreadable;
    if (lock.state == LockState::expired) ++look_.expired;
    look_.waiters += lock.waiters;
    if (lock.waiters > 0) {
        const auto known = queues_.find(lock.name);
        const bool goes_on = known != queues_.end() && known->second.token == lock.token;
        const Queue queue = goes_on ? known->second : Queue{lock.token, lock.as_of};
        look_.longest_queue = std::max(look_.longest_queue, seconds(lock.as_of - queue.since));
        if (look_.queues.size() < most_remembered) look_.queues.emplace(lock.name, queue);
    }
    if (lock.state != LockState::held || !lock.lease) return;
    ++look_.held;
    const Lease& lease = *lock.lease;
    const double margin = seconds(lease.expires_at - lock.as_of);
    if (lease.renew_seq > 0 && lease.ttl.count() > 0)
        look_.least_margin = std::min(look_.least_margin, margin / seconds(lease.ttl));
    if (!is_shown(lock.name)) return;
    const auto shorter = [](const Shown& a, const Shown& b) { return a.held_seconds > b.held_seconds; };
    look_.shown.push_back({lock.name.text(), seconds(lock.as_of - lease.acquired_at), margin});
    std::ranges::push_heap(look_.shown, shorter);
    if (look_.shown.size() <= options_.most) return;
    std::ranges::pop_heap(look_.shown, shorter);
    look_.shown.pop_back();
}

bool DaemonMetrics::is_shown(const LockName& name) const {
    return options_.most > 0 && std::ranges::none_of(options_.without, [&](const std::string& prefix) {
               return name.text().starts_with(prefix);
           });
}

void DaemonMetrics::look_ends(const StoreInfo& store, std::chrono::microseconds time) {
    const std::scoped_lock lock(mutex_);
    metrics_.set("holdfast_store_up", 1);
    metrics_.set("holdfast_store_look_seconds", seconds(time));
    for (const Grade grade : {Grade::a, Grade::b, Grade::c})
        metrics_.set("holdfast_store_grade", grade == store.grade ? 1 : 0, {{"grade", name_of(grade)}});
    metrics_.set("holdfast_locks", static_cast<double>(look_.held), {{"state", "held"}});
    metrics_.set("holdfast_locks", static_cast<double>(look_.expired), {{"state", "expired"}});
    metrics_.set("holdfast_locks", static_cast<double>(look_.unreadable), {{"state", "unreadable"}});
    metrics_.set("holdfast_waiters", static_cast<double>(look_.waiters));
    metrics_.set("holdfast_longest_queue_seconds", look_.longest_queue);
    metrics_.set("holdfast_least_renew_margin_ratio", look_.least_margin);
    Metrics::Series held;
    Metrics::Series margins;
    for (const Shown& each : look_.shown) {
        held.emplace_back(each.name, each.held_seconds);
        margins.emplace_back(each.name, each.margin_seconds);
    }
    metrics_.replace("holdfast_lock_held_seconds", "lock", held);
    metrics_.replace("holdfast_lock_renew_margin_seconds", "lock", margins);
    queues_ = std::move(look_.queues);
    look_ = {};
}

void DaemonMetrics::look_failed(const Error& error) {
    metrics_.set("holdfast_store_up", 0);
    metrics_.add("holdfast_store_errors_total", 1, {{"code", row_of(error.code).name}});
}

void DaemonMetrics::ended(std::size_t leases) {
    metrics_.add("holdfast_ended_leases_total", static_cast<double>(leases));
}

void DaemonMetrics::pruned(std::uint64_t events) {
    metrics_.add("holdfast_pruned_events_total", static_cast<double>(events));
}

}  // namespace holdfast::server
