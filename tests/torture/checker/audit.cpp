#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace checker {
namespace {

/// What the calls that name one lock_id say about it. `certain` leaves out what a restore may have undone.
struct Told {
    std::uint64_t certain_grants = 0;
    std::uint64_t acquired = 0;    ///< ok or unknown.
    std::uint64_t may_repeat = 0;  ///< Of these, those that may have found the lease there.
    std::uint64_t queued = 0;      ///< Refused with a place in line: may be handed the lock.
    std::uint64_t handed_over = 0;
    std::uint64_t certain_extensions = 0;
    std::uint64_t renewed = 0;
    std::uint64_t certain_releases = 0;
    std::uint64_t released = 0;
    std::uint64_t certain_breaks = 0;
    std::uint64_t broken = 0;
    Token token = 0;
    std::size_t line = 0;
};

/// What the audit says about it.
struct Written {
    std::uint64_t grants = 0;
    std::uint64_t extensions = 0;
    std::uint64_t releases = 0;
    std::uint64_t breaks = 0;
    Token token = 0;
    std::size_t line = 0;
    std::size_t others_since = 0;  ///< Leases that ended after this one had: a store remembers only the last.
    bool ended = false;
};

class AuditCheck {
public:
    AuditCheck(const History& history, const LockHistory& lock, Verdict& verdict)
        : history_(history), lock_(lock), verdict_(verdict) {}

    void run() {
        walk();
        for (const Op& op : lock_.ops) listen(op);
        for (const auto& [id, told] : told_) compare(id, told);
        for (const auto& [id, life] : lock_.lives) lived(life);
        // What a supervisor asks is not in the history; what its command says is.
        const bool supervised = std::ranges::find(lock_.ops, "supervise", &Op::kind) != lock_.ops.end();
        for (const auto& [id, written] : written_)
            if (!supervised && written.grants > 0 && told_[id].acquired + told_[id].queued + told_[id].handed_over == 0)
                flag("a grant that nobody asked for, or that was reported as refused", written.line, written.line);
        verdict_.counts["audit events"] += lock_.audit.size();
    }

private:
    void flag(const std::string& what, std::size_t first, std::size_t second) {
        verdict_.flag("C4", lock_.name + ": " + what, first, second);
    }

    /// The events must be consistent: they show the holder after each of them.
    void walk() {
        std::string holder;
        bool is_over = false;  ///< Its end was announced: its lease stays until the next grant, which names it.
        const Audit* last = nullptr;
        for (const Audit& event : lock_.audit) {
            const std::size_t before = last == nullptr ? event.line : last->line;
            if (event.seq != (last == nullptr ? 0 : last->seq) + 1) flag("an event is missing", before, event.line);
            Written& written = written_[event.id];
            if (written.line == 0) written.line = event.line;
            if (event.kind == "acquired" || event.kind == "stolen" || event.kind == "transferred" ||
                event.kind == "override_approved") {
                const std::string& expected = event.kind == "acquired" && !is_over ? std::string() : event.from;
                if (holder != expected) flag("granted while another lease was there", before, event.line);
                end(holder);
                if (++written.grants > 1) granted_again(event, written);
                written.token = event.token;
                holder = event.id;
                is_over = false;
            } else if (event.kind == "expired") {
                if (holder != event.id || is_over) flag("the end of another lease was announced", before, event.line);
                is_over = true;
            } else if (event.kind != "override_requested" && event.kind != "override_denied") {
                if (holder != event.id) flag(event.kind + " by somebody who did not hold it", before, event.line);
                if (is_over && event.kind != "broken") flag(event.kind + " after its end", before, event.line);
                if (event.kind == "renewed" || event.kind == "revived") ++written.extensions;
                if (event.kind == "released") ++written.releases;
                if (event.kind == "broken") ++written.breaks;
                if (event.kind == "released" || event.kind == "broken") {
                    end(std::exchange(holder, {}));
                    is_over = false;
                }
            }
            last = &event;
        }
        if (!lock_.state) return;
        const State& state = *lock_.state;
        if (last != nullptr && (state.seq != last->seq || state.token != last->token || state.id != holder))
            flag("the lock is not what its last event says", last->line, state.line);
        if (state.chain == "broken") flag("the audit chain is broken", state.line, state.line);
    }

    void end(const std::string& id) {
        if (id.empty()) return;
        for (auto& [other, written] : written_)
            if (written.ended) ++written.others_since;
        written_[id].ended = true;
        written_[id].others_since = 0;
    }

    /// A store that has forgotten a lease grants it to a request that is repeated late. That harms nobody who was never
    /// told of the first grant.
    void granted_again(const Audit& event, const Written& first) {
        const bool was_told = std::ranges::any_of(lock_.ops, [&](const Op& op) {
            return op.id == event.id && op.ending == Ending::ok &&
                   (op.token == first.token || op.granted == first.token);
        });
        if (was_told || first.others_since == 0) return flag("one lease was granted twice", first.line, event.line);
        ++verdict_.counts["grants repeated after the store had forgotten them"];
    }

    /// What was acknowledged between the copy and its restore may be gone, and the operator knows.
    [[nodiscard]] bool may_be_undone(Nanos begun, Nanos ended) const {
        return std::ranges::any_of(history_.faults, [&](const Fault& fault) {
            return fault.kind == "restore" && ended >= fault.from && begun <= fault.ended;
        });
    }

    /// A command was started only because its lease had been acknowledged.
    void lived(const Life& life) {
        const Written written = written_[life.id];
        if ((written.grants == 0 || written.token != life.token) && !may_be_undone(life.begun, life.begun))
            flag(fmt::format("a child lived under token {}, which is not in the audit", life.token), life.line,
                 written.line == 0 ? life.line : written.line);
    }

    void listen(const Op& op) {
        if (op.ending == Ending::refused && op.ticket > 0) ++told_[op.id].queued;
        if (op.ending == Ending::refused) return;
        const bool certain = op.ending == Ending::ok && !may_be_undone(op.begun, op.ended);
        const std::uint64_t one = certain ? 1 : 0;
        Told& told = told_[op.kind == "transfer" ? op.to : op.id];
        if (certain && told.line == 0) told.line = op.end_line;
        if (op.kind == "handed") {
            told.certain_grants += one;
            if (certain) told.token = op.granted;
        } else if (op.kind == "acquire" || op.kind == "transfer") {
            // The first grants; what is granted again to the same lock_id is a renewal.
            if (op.kind == "acquire" && told.certain_grants > 0) told.certain_extensions += one;
            told.certain_grants += one;
            if (op.kind == "acquire" && (op.ending != Ending::ok || op.renewals > 0)) ++told.may_repeat;
            ++(op.kind == "acquire" ? told.acquired : told.handed_over);
            if (certain) told.token = op.granted;
        } else if (op.kind == "renew") {
            told.certain_extensions += one;
            ++told.renewed;
        } else if (op.kind == "release" || op.kind == "cancel") {
            if (op.kind == "release") told.certain_releases += one;
            ++told.released;
        } else if (op.kind == "break") {
            told.certain_breaks += one;
            ++told.broken;
        }
    }

    void compare(const std::string& id, const Told& told) {
        const Written written = written_[id];
        const std::size_t line = written.line == 0 ? told.line : written.line;
        if (told.certain_grants > 0 && (written.grants == 0 || written.token != told.token))
            flag(fmt::format("token {} was acknowledged and is not in the audit", told.token), told.line, line);
        if (written.extensions < told.certain_extensions)
            flag(fmt::format("{} renewals were acknowledged and {} are in the audit", told.certain_extensions,
                             written.extensions),
                 told.line, line);
        // One of the requesters was granted it, unless it was handed on.
        const bool one_was_first = told.may_repeat > 0 && told.may_repeat == told.acquired && told.queued == 0;
        const std::uint64_t repeats = told.may_repeat - (one_was_first ? 1 : 0);
        if (written.extensions > told.renewed + repeats)
            flag(fmt::format("{} renewals are in the audit and {} were asked for", written.extensions,
                             told.renewed + repeats),
                 told.line, line);
        if (written.releases < std::min<std::uint64_t>(told.certain_releases, 1))
            flag("a release was acknowledged and is not in the audit", told.line, line);
        if (written.releases > 0 && told.released == 0) flag("released by nobody", told.line, line);
        if (written.breaks < told.certain_breaks || written.breaks > told.broken)
            flag("breaks acknowledged and breaks in the audit differ", told.line, line);
    }

    const History& history_;
    const LockHistory& lock_;
    Verdict& verdict_;
    std::map<std::string, Told> told_{};
    std::map<std::string, Written> written_{};
};

}  // namespace

void check_audit(const History& history, const LockHistory& lock, Verdict& verdict) {
    AuditCheck(history, lock, verdict).run();
}

}  // namespace checker
