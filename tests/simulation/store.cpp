#include "simulation/store.hpp"

#include "kernel/rebase.hpp"

#include <algorithm>

namespace holdfast::simulation {
namespace {

const LockName& the_lock() {
    static const LockName name = *LockName::parse("deploy/web");
    return name;
}

bool is_grant(EventKind kind) { return kind == EventKind::acquired || kind == EventKind::stolen; }

}  // namespace

SimulatedStore::SimulatedStore(World& world, ClockKind kind, Bug bug)
    : world_(world), kind_(kind), bug_(bug), saved_{kernel::encode(kernel::blank(the_lock()))} {}

kernel::Record SimulatedStore::record() const {
    auto record = kernel::decode_record(saved_.record);
    if (!record) {
        world_.broke("the store cannot read its own record");
        return kernel::blank(the_lock());
    }
    if (kind_ == ClockKind::server) return std::move(*record);
    return kernel::rebase(std::move(*record), mark(saved_.offset), mark(offset_), wall());
}

std::vector<kernel::Ticket> SimulatedStore::tickets() const {
    std::vector<kernel::Ticket> tickets;
    for (const auto& [id, bytes] : saved_.tickets) {
        auto ticket = kernel::decode_ticket(bytes);
        if (!ticket) {
            world_.broke("the store cannot read its own ticket");
            continue;
        }
        const bool moved = kind_ == ClockKind::host;
        tickets.push_back(moved ? kernel::rebase(std::move(*ticket), mark(saved_.offset), mark(offset_), wall())
                                : std::move(*ticket));
    }
    std::ranges::sort(tickets, {}, &kernel::Ticket::number);
    return tickets;
}

kernel::State SimulatedStore::load(const Request& request) const {
    kernel::State state{.record = record()};
    const auto own = kernel::ticket_of(request);
    for (const kernel::Ticket& ticket : tickets()) {
        const bool live = ticket.expires_at > wall();
        if (own == ticket.lock_id) state.queue.own = ticket;
        if (live && !state.queue.head) state.queue.head = ticket;
        if (live) ++state.queue.waiters;
        state.queue.last_number = std::max(state.queue.last_number, ticket.number);
    }
    return state;
}

std::optional<Reply> SimulatedStore::apply(const Request& request) {
    if (world_.now() < up_again_) return std::nullopt;
    if (const auto* renew = std::get_if<Renew>(&request); renew != nullptr && bug_ == Bug::renew_unchecked)
        return renewed_for_anybody(*renew);
    const kernel::State state = load(request);
    kernel::Decision decision = kernel::step(state, request, wall());
    save(state, decision);
    return std::move(decision.reply);
}

void SimulatedStore::save(const kernel::State& before, const kernel::Decision& decision) {
    const bool changes = decision.record || decision.put_ticket || decision.drop_ticket;
    if (!changes) return;
    // Everything is written under one mark, so what does not change is written again, too.
    std::map<LockId, kernel::Bytes> kept;
    for (const kernel::Ticket& ticket : tickets())
        if (ticket.expires_at > wall()) kept.emplace(ticket.lock_id, kernel::encode(ticket));
    if (decision.drop_ticket) kept.erase(*decision.drop_ticket);
    if (decision.put_ticket) kept.insert_or_assign(decision.put_ticket->lock_id, kernel::encode(*decision.put_ticket));
    saved_.tickets = std::move(kept);
    kernel::Record record = decision.record ? *decision.record : before.record;
    if (bug_ == Bug::release_resets_token && !record.held) record.token = {};
    saved_.record = kernel::encode(record);
    saved_.offset = offset_;
    for (const AuditEvent& event : decision.events) {
        if (is_grant(event.kind)) check_grant(event);
        world_.note("store: {} {} token {}", name_of(event.kind), event.lock_id.text().substr(0, 8), event.token.value);
    }
    saved_.events.insert(saved_.events.end(), decision.events.begin(), decision.events.end());
}

void SimulatedStore::check_grant(const AuditEvent& event) {
    ++grants_;
    // A store that was set back has forgotten what it granted; only the clock is left to make tokens rise.
    if (!restored_ && event.token <= last_token_) world_.broke("a grant did not raise the token");
    last_token_ = event.token;
}

Reply SimulatedStore::renewed_for_anybody(const Renew& request) {
    kernel::Record now = record();
    if (!now.held) return fail(Errc::lock_not_held, "nobody holds it");
    Lease& lease = now.held->lease;
    lease.renewed_at = wall();
    lease.expires_at = wall() + request.ttl.time();
    saved_.record = kernel::encode(now);
    return holdfast::Outcome{kernel::status_of(now, 0, wall()), std::nullopt};
}

std::optional<LockId> SimulatedStore::holder() const {
    const kernel::Record now = record();
    return now.held ? std::optional(now.held->lease.lock_id) : std::nullopt;
}

void SimulatedStore::step_clock(Millis step) {
    world_.note("store: the clock is moved by {} ms", step.count());
    offset_ += step;
    if (kind_ == ClockKind::host) return;
    if (step > Millis{0}) clock_jumped_ = true;
    if (step < Millis{0}) set_back_ -= step;
}

void SimulatedStore::copy_or_restore() {
    if (!copy_) {
        copy_ = saved_;
        return;
    }
    world_.note("store: set back to an old copy");
    saved_ = *copy_;
    restored_ = true;
}

void SimulatedStore::verify_audit() const {
    const auto record = kernel::decode_record(saved_.record);
    if (!record) return world_.broke("the last record cannot be read");
    const auto verified = verify_chain(saved_.events, kernel::status_of(*record, 0, wall()));
    if (!verified) world_.broke(verified.error().message);
}

}  // namespace holdfast::simulation
