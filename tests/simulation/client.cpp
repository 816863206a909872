#include "simulation/client.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace holdfast::simulation {
namespace {

using namespace std::chrono_literals;

/// As in src/client: longer would outlive the ticket that a call keeps alive.
constexpr Millis waiting_call_timeout = 2000ms;

Credentials fresh(Random& random) {
    std::array<std::uint8_t, 16> id{};
    LeaseKey::Bytes key{};
    for (std::size_t i = 0; i < 16; i += 8) {
        const std::uint64_t half = random.next();
        const std::uint64_t other = random.next();
        std::memcpy(id.data() + i, &half, 8);
        std::memcpy(key.data() + i, &other, 8);
    }
    return {LockId(id), LeaseKey(key)};
}

Ttl some_ttl(Random& random) {
    // Not shorter: below 400 ms a step of the wall clock that passes for noise is longer than the holder's margin.
    constexpr std::array choices{600ms, 1000ms, 3000ms};
    return *Ttl::of(choices[static_cast<std::size_t>(random.below(choices.size()))]);
}

}  // namespace

Client::Client(World& world, SimulatedStore& store, FencedRegister& resource, Bug bug, int number, Believes believes)
    : world_(world),
      store_(store),
      resource_(resource),
      bug_(bug),
      number_(number),
      on_belief_(std::move(believes)),
      rate_(970 + world.random.below(61)),
      as_(fresh(world.random)),
      ttl_(some_ttl(world.random)) {}

Boottime Client::local() const { return Boottime{Millis{world_.now().count() * rate_ / 1000}}; }

void Client::after(Millis delay, const Action& action) {
    world_.after(delay, [this, life = life_, action] { awake(life, action); });
}

void Client::awake(std::uint64_t life, const Action& action) {
    if (life != life_) return;
    const Millis left = stopped_until_ - world_.now();
    if (left > 0ms) return world_.after(left, [this, life, action] { awake(life, action); });
    action();
}

void Client::call(const Request& request, Millis timeout, const Then& then) {
    const std::uint64_t number = open_call_ = ++calls_;
    const Boottime sent_at = local();
    const auto once = [this, number, sent_at, then](std::optional<Reply> reply) {
        if (open_call_ != number) return;
        open_call_ = 0;
        then(sent_at, std::move(reply));
    };
    after(timeout, [once] { once(std::nullopt); });
    if (world_.now() < requests_cut_until_) return;
    world_.carry([this, life = life_, request, once] {
        const auto reply = store_.apply(request);
        if (!reply || world_.now() < answers_cut_until_) return;
        world_.carry([this, life, once, reply] { awake(life, [once, reply] { once(reply); }); });
    });
}

void Client::idle() {
    phase_ = Phase::idle;
    ++life_;
    after(world_.random.between(0ms, 2000ms), [this] { begin(); });
}

void Client::begin() {
    phase_ = Phase::asking;
    as_ = fresh(world_.random);
    ttl_ = some_ttl(world_.random);
    patience_ = local() + world_.random.between(500ms, 20'000ms);
    ask();
}

void Client::ask() {
    Acquire request{.name = *LockName::parse("deploy/web"), .as = as_, .ttl = ttl_};
    request.holder = {fmt::format("client {}", number_), ""};
    request.ticket = Ttl::of(std::clamp<Millis>(ttl_.time(), 3000ms, 10'000ms)).value();
    call(request, waiting_call_timeout, [this, request](Boottime sent_at, const std::optional<Reply>& reply) {
        if (reply && *reply) return on_grant(sent_at, **reply);
        const bool again = !reply || reply->error().code == Errc::lock_conflict;
        if (!again) return idle();
        if (local() >= patience_) {
            // The ticket goes, and so does a grant whose answer was lost on the way.
            call(Cancel{request.name, as_}, waiting_call_timeout,
                 [this](Boottime, const std::optional<Reply>&) { idle(); });
            return;
        }
        const Millis most = std::clamp<Millis>(ttl_.time() / 4, 20ms, 1000ms);
        after(world_.random.between(most / 2, most), [this] { ask(); });
    });
}

void Client::on_grant(Boottime sent_at, const Outcome& outcome) {
    const Lease& lease = *outcome.lock.lease;
    token_ = lease.token;
    plan_ = {lease.expires_at - lease.renewed_at, ttl_.time() / 3,
             bug_ == Bug::deadline_from_reply ? local() : sent_at};
    if (local() >= plan_.deadline()) return let_go(1);
    phase_ = Phase::holding;
    world_.note("client {}: holds {} token {}, {} ms left", number_, as_.lock_id.text().substr(0, 8), token_.value,
                (plan_.deadline() - local()).count());
    on_belief_(*this);
    after(plan_.next_renewal() - local(), [this] { keep(); });
    after(world_.random.between(0ms, 2 * ttl_.time()), [this] {
        if (phase_ == Phase::holding) let_go(1);
    });
    after(world_.random.between(0ms, ttl_.time()), [this] {
        if (!believes()) return;
        if (bug_ == Bug::no_seal) return work(1);
        const FencedRegister::Pass pass{as_.lock_id, token_};
        auto sealed = std::make_shared<bool>(false);
        use_register([this, pass, sealed] { *sealed = resource_.seal(pass); },
                     [this, sealed] {
                         if (*sealed) work(1);
                     });
    });
}

void Client::keep() {
    if (phase_ != Phase::holding) return;
    const Boottime now = local();
    // After any sleep the deadline comes first: the process may have been stopped beyond it.
    if (now >= plan_.deadline()) {
        world_.note("client {}: lost token {}", number_, token_.value);
        return idle();
    }
    const Millis timeout = std::min(plan_.deadline() - now, plan_.call_timeout(now));
    call(Renew{*LockName::parse("deploy/web"), as_, ttl_, Revive::no}, timeout,
         [this](Boottime sent_at, const std::optional<Reply>& reply) { renewed(sent_at, reply); });
}

void Client::renewed(Boottime sent_at, const std::optional<Reply>& reply) {
    if (phase_ != Phase::holding) return;
    Boottime next = plan_.next_attempt(local());
    if (reply && !*reply) {
        world_.note("client {}: lost token {}: {}", number_, token_.value, row_of(reply->error().code).name);
        return idle();
    }
    if (reply) {
        const Lease& lease = *(*reply)->lock.lease;
        plan_.granted = lease.expires_at - lease.renewed_at;
        plan_.sent_at = bug_ == Bug::deadline_from_reply ? local() : sent_at;
        next = plan_.next_renewal();
    } else if (bug_ == Bug::unknown_extends) {
        plan_.sent_at = sent_at;
    }
    if (believes()) on_belief_(*this);
    after(std::min(next, plan_.deadline()) - local(), [this] { keep(); });
}

void Client::use_register(const Action& operation, const Action& then) {
    // Messages may arrive twice; a client that waits for an answer continues once.
    auto answered = std::make_shared<bool>(false);
    const auto once = [answered, then] {
        if (std::exchange(*answered, true)) return;
        then();
    };
    world_.carry([this, life = life_, operation, once] {
        operation();
        world_.carry([this, life, once] { awake(life, once); });
    });
}

/// Reads, thinks, and writes what follows from what it read.
void Client::work(std::uint64_t writes) {
    if (!believes()) return;
    const FencedRegister::Pass pass{as_.lock_id, token_};
    auto version = std::make_shared<std::uint64_t>(0);
    use_register([this, version] { *version = resource_.version(); },
                 [this, pass, version, writes] {
                     // It may be stopped right here, after it looked at its deadline.
                     if (!believes()) return;
                     const std::uint64_t follows = *version;
                     after(world_.random.between(0ms, 200ms), [this, pass, follows, writes] {
                         use_register([this, pass, writes, follows] { resource_.write(pass, writes, follows); },
                                      [this, writes] { work(writes + 1); });
                     });
                 });
}

void Client::let_go(int tries) {
    phase_ = Phase::releasing;
    call(Release{*LockName::parse("deploy/web"), as_}, waiting_call_timeout,
         [this, tries](Boottime, const std::optional<Reply>& reply) {
             if (!reply && tries > 0) return let_go(tries - 1);
             ++finished_;
             idle();
         });
}

void Client::stop_for(Millis time) {
    world_.note("client {}: stopped for {} ms", number_, time.count());
    stopped_until_ = world_.now() + time;
}

void Client::crash() {
    world_.note("client {}: crashes", number_);
    open_call_ = 0;
    idle();
}

void Client::cut_off(Millis time, bool requests, bool answers) {
    world_.note("client {}: cut off for {} ms", number_, time.count());
    if (requests) requests_cut_until_ = world_.now() + time;
    if (answers) answers_cut_until_ = world_.now() + time;
}

void Client::calm_down() { stopped_until_ = requests_cut_until_ = answers_cut_until_ = world_.now(); }

}  // namespace holdfast::simulation
