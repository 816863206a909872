#include "conformance/random_history.hpp"

#include "support/requests.hpp"

#include <algorithm>
#include <string>

namespace holdfast::tests {

using std::chrono::milliseconds;

int RandomHistory::up_to(int most) { return static_cast<int>(random_() % (static_cast<std::uint64_t>(most) + 1)); }
bool RandomHistory::once_in(int times) { return up_to(times - 1) == 0; }

std::vector<LockName> RandomHistory::names() { return {lock("a"), lock("b/c"), lock("ü")}; }

LockName RandomHistory::name() { return names()[static_cast<std::size_t>(up_to(2))]; }

std::array<std::uint8_t, 16> RandomHistory::bytes() {
    std::array<std::uint8_t, 16> made{};
    std::ranges::generate(made, [&] { return static_cast<std::uint8_t>(up_to(255)); });
    return made;
}

Credentials RandomHistory::fresh() { return {LockId(bytes()), LeaseKey(bytes())}; }

Credentials RandomHistory::somebody(const LockName& name) {
    auto& clients = known_[name].clients;
    if (clients.empty() || once_in(12)) return fresh();
    // The newest client is the likeliest to hold the lock.
    Credentials who =
        once_in(2) ? clients.front() : clients[static_cast<std::size_t>(up_to(static_cast<int>(clients.size()) - 1))];
    if (once_in(25)) who.key = LeaseKey(bytes());
    return who;
}

/// Short enough that leases run out in the middle, and often to the very millisecond.
Ttl RandomHistory::ttl() {
    static constexpr std::array choices{50, 100, 500, 1000, 5000, 60'000};
    return lasting(milliseconds{choices[static_cast<std::size_t>(up_to(5))]});
}

milliseconds RandomHistory::pause() {
    static constexpr std::array choices{1, 49, 50, 51, 100, 450, 500, 1000, 5000, 70'000};
    return milliseconds{choices[static_cast<std::size_t>(up_to(9))]};
}

std::vector<LockName> RandomHistory::exclusions(const LockName& name) {
    std::vector<LockName> others;
    if (!once_in(4)) return others;
    for (const LockName& other : names())
        if ((other != name || once_in(30)) && once_in(2)) others.push_back(other);
    return others;
}

Acquire RandomHistory::acquire(const LockName& name) {
    Acquire request{.name = name, .as = once_in(2) ? fresh() : somebody(name), .ttl = ttl()};
    request.holder = {"client " + std::to_string(up_to(4)), once_in(3) ? "user" : ""};
    if (once_in(3)) request.operation = "operation";
    if (once_in(3)) request.reason = "a reason\nof two lines";
    if (once_in(4)) request.max_hold = ttl().time() * 2;
    if (once_in(2)) request.ticket = ttl();
    if (once_in(4)) request.meta = {{"key", std::to_string(up_to(9))}, {"other", ""}};
    if (once_in(50)) request.holder.text.clear();
    request.unless_held = exclusions(name);
    const auto& seen = known_[name];
    if (once_in(6)) request.takes_over = StaleLease{seen.lock_id, seen.renew_seq, ttl().time()};
    if (request.takes_over && !once_in(10)) request.ticket.reset();
    return request;
}

Check RandomHistory::check(const LockName& name) {
    const Known& known = known_[name];
    Check request{.name = name, .token = known.token};
    if (once_in(4)) ++request.token.value;
    if (once_in(2)) request.lock_id = known.lock_id;
    request.unless_held = exclusions(name);
    return request;
}

Request RandomHistory::request() {
    const LockName on = name();
    const std::string actor = once_in(20) ? "" : "operator";
    switch (up_to(19)) {
        default: return acquire(on);
        case 0:
        case 1: {
            Renew renew{on, somebody(on), ttl(), once_in(3) ? Revive::yes : Revive::no};
            if (once_in(3)) renew.meta = {{"value", std::to_string(up_to(9))}};
            return renew;
        }
        case 2:
        case 3:
        case 4: return Release{on, somebody(on)};
        case 5: return Cancel{on, somebody(on)};
        case 6: return Transfer{on, somebody(on), {"heir", ""}, once_in(3) ? somebody(on) : fresh(), "handed over"};
        case 7: return Break{on, once_in(4) ? LockId(bytes()) : known_[on].lock_id, actor, "stuck"};
        case 8: return check(on);
        case 9: return Ask{on, once_in(2) ? fresh() : somebody(on), {"asker", "user"}, "please", ttl(), ttl()};
        case 10: {
            const Verdict verdict = once_in(2) ? Verdict::approve : Verdict::deny;
            Answer answer{on, somebody(on).lock_id, verdict, actor, "decided", std::nullopt};
            if (once_in(3)) answer.by = somebody(on);
            if (once_in(3)) answer.longest_ttl = ttl().time();
            if (once_in(3)) answer.max_hold = ttl().time();
            return answer;
        }
        case 11: return Prune{on, static_cast<std::uint64_t>(up_to(200)), actor, "retention"};
        case 14:
            return ReportFenced{on, known_[on].token, known_[on].lock_id, {"late", ""}, "sqlite:app.db", "refused"};
        case 12:
        case 13: return Expire{on, once_in(5) ? somebody(on).lock_id : known_[on].lock_id};
    }
}

std::vector<Request> RandomHistory::batch() {
    std::vector<Request> requests;
    const int size = once_in(3) ? up_to(8) : 1;
    for (int i = 0; i < size; ++i) {
        requests.push_back(request());
        const auto remember = [&](const Credentials& who) {
            auto& clients = known_[name_of(requests.back())].clients;
            clients.push_front(who);
            if (clients.size() > 5) clients.pop_back();
        };
        // Remembered at once, so that a later request of the same batch can be about it.
        if (const auto* acquire = std::get_if<Acquire>(&requests.back())) remember(acquire->as);
        if (const auto* ask = std::get_if<Ask>(&requests.back())) remember(ask->as);
        if (const auto* transfer = std::get_if<Transfer>(&requests.back())) remember(transfer->to_as);
    }
    return requests;
}

void RandomHistory::learn(const Request& request, const Reply& reply) {
    if (!reply || !reply->lock.lease) return;
    Known& known = known_[name_of(request)];
    known.token = reply->lock.lease->token;
    known.lock_id = reply->lock.lease->lock_id;
    known.renew_seq = reply->lock.lease->renew_seq;
}

}  // namespace holdfast::tests
