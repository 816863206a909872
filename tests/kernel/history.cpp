#include "kernel/history.hpp"

#include <algorithm>
#include <ostream>

namespace holdfast::tests {

using std::chrono::milliseconds;

namespace {

constexpr std::array<std::string_view, moves> names_of_moves{"idle",
                                                             "take",
                                                             "queue",
                                                             "repeat",
                                                             "renew",
                                                             "revive",
                                                             "release",
                                                             "cancel",
                                                             "transfer",
                                                             "transfer_back",
                                                             "break_seen",
                                                             "break_old",
                                                             "check",
                                                             "ask",
                                                             "approve",
                                                             "deny",
                                                             "approve_as_holder",
                                                             "approve_as_stranger",
                                                             "forge",
                                                             "squat",
                                                             "prune",
                                                             "expire",
                                                             "expire_old",
                                                             "take_over",
                                                             "take_over_old"};

milliseconds pause_of(std::uint64_t bits) {
    const auto length = static_cast<std::int64_t>(bits >> 4);
    switch (bits & 15) {
        case 0: return milliseconds{-(length % 50)};
        case 1:
        case 2: return milliseconds{length % 4000};
        case 3:
        case 4:
        case 5:
        case 6: return milliseconds{length % 300};
        default: return milliseconds{length % 3};
    }
}

Ttl ttl_of(std::uint32_t variant) {
    constexpr std::array<int, 4> choices{50, 300, 1000, 5000};
    return lasting(milliseconds{choices[variant % choices.size()]});
}

}  // namespace

Act Act::from(std::uint64_t code) {
    if (code == 0) return {};
    Act act;
    act.move = static_cast<Move>(code % moves);
    code /= moves;
    act.client = static_cast<std::uint32_t>(code % clients);
    code /= clients;
    act.lock = static_cast<std::uint32_t>(code % locks);
    code /= locks;
    act.variant = static_cast<std::uint32_t>(code % 64);
    act.pause = pause_of(code / 64);
    return act;
}

std::ostream& operator<<(std::ostream& out, const Act& act) {
    if (act.move == Move::idle && act.pause == milliseconds{0}) return out << "-";
    return out << "\n  +" << act.pause.count() << "ms client " << act.client << " lock " << act.lock << " "
               << names_of_moves[static_cast<std::size_t>(act.move)] << "/" << act.variant;
}

Cast::Cast(LittleStore& store) : store_(store) {
    for (std::size_t i = 0; i < locks; ++i) names_.push_back(lock("lock/" + std::to_string(i)));
}

Credentials Cast::fresh() {
    // Counted, not random, so that a seed replays the same history to the byte.
    LockId::Bytes id{};
    ++made_;
    for (std::size_t i = 0; i < 8; ++i) id[i] = static_cast<std::uint8_t>(made_ >> (8 * i));
    LeaseKey::Bytes key = id;
    key[15] = 1;
    return {LockId(id), LeaseKey(key)};
}

Acquire Cast::acquire(const Act& act) {
    Acquire request{.name = name(act.lock), .as = fresh(), .ttl = ttl_of(act.variant)};
    request.holder.text = "client-" + std::to_string(act.client);
    if (act.move == Move::queue) request.ticket = ttl_of(act.variant / 4);
    if (act.variant % 8 == 7) request.max_hold = milliseconds{700};
    if (act.variant >= 56) request.unless_held = {name((act.lock + 1) % locks)};
    return request;
}

Acquire Cast::take_over(const Act& act, const Lease& seen) {
    Acquire request = acquire(act);
    // One in four has not seen the last renewal.
    const std::uint64_t missed = act.variant % 4 == 0 ? 1 : 0;
    const auto after = ttl_of(act.variant / 4).time();
    request.takes_over = StaleLease{seen.lock_id, seen.renew_seq - std::min(missed, seen.renew_seq), after};
    return request;
}

std::optional<Request> Cast::request_of(const Act& act) {
    const LockName& lock_name = name(act.lock);
    const auto& held = store_.shelf(lock_name).record.held;
    auto& mine = last(act);
    if (act.move == Move::take || act.move == Move::queue) return *(mine = acquire(act));
    if (act.move == Move::take_over && held) return *(mine = take_over(act, held->lease));
    if (act.move == Move::forge && held) return forged(act);
    if (act.move == Move::squat) return squatting(act);
    if (act.move == Move::prune) return Prune{lock_name, store_.shelf(lock_name).record.seq - act.variant % 4, "root"};
    if (act.move == Move::break_seen && held) return Break{lock_name, held->lease.lock_id, "root", ""};
    if (act.move == Move::expire && held) return Expire{lock_name, held->lease.lock_id};
    if (act.move == Move::approve) return answer(act, Verdict::approve, std::nullopt);
    if (act.move == Move::deny) return answer(act, Verdict::deny, std::nullopt);
    if (act.move == Move::approve_as_holder) {
        const auto holder = holder_of(act.lock);
        return holder ? answer(act, Verdict::approve, holder) : std::nullopt;
    }
    if (act.move == Move::approve_as_stranger) return answer(act, Verdict::approve, fresh());
    if (!mine) return std::nullopt;

    switch (act.move) {
        case Move::repeat: return *mine;
        case Move::renew: return Renew{lock_name, mine->as, ttl_of(act.variant), Revive::no};
        case Move::revive: return Renew{lock_name, mine->as, ttl_of(act.variant), Revive::yes};
        case Move::release: return Release{lock_name, mine->as};
        case Move::cancel: return Cancel{lock_name, mine->as};
        case Move::break_old: return Break{lock_name, mine->as.lock_id, "root", ""};
        case Move::take_over_old: {
            Lease had;
            had.lock_id = mine->as.lock_id;
            return *(mine = take_over(act, had));
        }
        case Move::expire_old: return Expire{lock_name, mine->as.lock_id};
        case Move::check: return check(lock_name, held ? held->lease.token : FencingToken{1});
        case Move::ask: {
            // Half of the askers wait in the queue as well, under the same credentials.
            if (act.variant % 2 == 0) mine->as = fresh();
            return Ask{lock_name, mine->as, mine->holder, "", ttl_of(act.variant), ttl_of(act.variant / 4)};
        }
        case Move::transfer:
        case Move::transfer_back: {
            auto& other = last_[(act.client + 1 + act.variant % (clients - 1)) % clients][act.lock];
            if (!other) return std::nullopt;
            const Credentials from = mine->as;
            if (act.move == Move::transfer) other->as = fresh();
            return Transfer{lock_name, from, other->holder, other->as, ""};
        }
        default: return std::nullopt;
    }
}

Request Cast::forged(const Act& act) {
    const LockName& lock_name = name(act.lock);
    const Credentials thief{store_.shelf(lock_name).record.held->lease.lock_id, fresh().key};
    const Holder holder{"thief", ""};
    switch (act.variant % 6) {
        case 0: {
            Acquire request = acquire(act);
            request.as = thief;
            return request;
        }
        case 1: return Renew{lock_name, thief, ttl_of(0), Revive::yes};
        case 2: return Release{lock_name, thief};
        case 3: return Cancel{lock_name, thief};
        case 4: return Transfer{lock_name, thief, holder, fresh(), ""};
        default: return Ask{lock_name, thief, holder, "", ttl_of(0), ttl_of(0)};
    }
}

std::optional<Request> Cast::squatting(const Act& act) {
    const auto& shelf = store_.shelf(name(act.lock));
    Acquire request = acquire(act);
    if (act.variant % 2 == 0 && shelf.record.pending) {
        request.as.lock_id = shelf.record.pending->ask.lock_id;
        return request;
    }
    if (shelf.tickets.empty()) return std::nullopt;
    request.as.lock_id = shelf.tickets.front().lock_id;
    if (act.variant % 3 == 0) return Cancel{request.name, request.as};
    return request;
}

std::optional<Credentials> Cast::holder_of(std::uint32_t lock) {
    const auto& held = store_.shelf(name(lock)).record.held;
    for (const auto& client : last_)
        if (held && client[lock] && client[lock]->as.lock_id == held->lease.lock_id) return client[lock]->as;
    return std::nullopt;
}

std::optional<Request> Cast::answer(const Act& act, Verdict verdict, std::optional<Credentials> by) {
    const auto& pending = store_.shelf(name(act.lock)).record.pending;
    if (!pending) return std::nullopt;
    Answer answer{name(act.lock), pending->ask.lock_id, verdict, "root", "", std::move(by)};
    if (act.variant % 3 == 0) answer.longest_ttl = pending->ask.ttl / 2 + Ttl::shortest;
    if (act.variant % 2 == 0) answer.max_hold = pending->ask.ttl * 2;
    return answer;
}

}  // namespace holdfast::tests
