#include "simulation/simulation.hpp"

#include "simulation/client.hpp"

#include <algorithm>
#include <memory>
#include <set>

namespace holdfast::simulation {
namespace {

using namespace std::chrono_literals;

/// Everybody has had a turn long before this, unless somebody is stuck.
constexpr Millis enough_calm = 180'000ms;

class Play {
public:
    Play(std::uint64_t seed, Bug bug, Tracing tracing)
        : world_(seed, tracing),
          store_(world_, world_.random.one_in(2) ? ClockKind::host : ClockKind::server, bug),
          register_(world_, bug) {
        const auto count = 2 + world_.random.below(3);
        for (int i = 0; i < count; ++i)
            clients_.push_back(std::make_unique<Client>(world_, store_, register_, bug, i,
                                                        [this](const Client& client) { check_alone(client); }));
        // Some worlds have faults that excuse others; in most of them nothing is excused.
        operator_at_work_ = world_.random.one_in(4);
        backups_ = world_.random.one_in(8);
        clock_moves_ = world_.random.one_in(2);
    }

    Outcome run(std::uint64_t seed) {
        for (const auto& client : clients_) client->start();
        plan_fault();
        const Millis storm = world_.random.between(4000ms, 16'000ms);
        while (world_.now() < storm && world_.step()) {
        }
        calm_down();
        wait_for_turns();
        if (!world_.failure()) store_.verify_audit();
        return {seed,    world_.steps(),   store_.grants(),    register_.refusals(), promised_overlaps_,
                faults_, world_.failure(), world_.last_notes()};
    }

private:
    void plan_fault() {
        world_.after(world_.random.between(50ms, 1500ms), [this] {
            if (!world_.stormy) return;
            ++faults_;
            cause_fault();
            plan_fault();
        });
    }

    void cause_fault() {
        Random& random = world_.random;
        Client& client = *clients_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(clients_.size())))];
        switch (random.below(8)) {
            case 0:
            case 1: return client.stop_for(random.between(10ms, 6000ms));
            case 2: return client.crash();
            case 3: return client.cut_off(random.between(10ms, 4000ms), random.one_in(2), true);
            case 4: return store_.go_down(random.between(10ms, 3000ms));
            case 5:
                if (clock_moves_) store_.step_clock(random.between(-5000ms, 5000ms));
                return;
            case 6:
                if (operator_at_work_) break_lock();
                return;
            default:
                if (backups_) store_.copy_or_restore();
        }
    }

    void break_lock() {
        const auto victim = store_.holder();
        if (!victim) return;
        world_.carry([this, id = *victim] {
            const auto reply = store_.apply(Break{*LockName::parse("deploy/web"), id, "operator", "simulated"});
            if (reply && *reply) broken_.insert(id);
        });
    }

    void check_alone(const Client& client) {
        const auto is_sure = [&](const std::unique_ptr<Client>& other) {
            return other->believes() && !broken_.contains(other->lock_id());
        };
        if (std::ranges::count_if(clients_, is_sure) <= 1) return;
        if (store_.let_time_jump()) {
            ++promised_overlaps_;
            return;
        }
        world_.broke(fmt::format("client {} believes that it holds the lock, and it is not alone", client.number()));
    }

    void calm_down() {
        world_.note("the storm is over");
        world_.stormy = false;
        store_.go_down(0ms);
        for (const auto& client : clients_) client->calm_down();
    }

    void wait_for_turns() {
        std::vector<int> before;
        for (const auto& client : clients_) before.push_back(client->finished());
        // A clock that was set back keeps the lease of the dead for as much longer.
        const Millis end = world_.now() + enough_calm + store_.set_back();
        const auto everybody_had_one = [&] {
            for (std::size_t i = 0; i < clients_.size(); ++i)
                if (clients_[i]->finished() == before[i]) return false;
            return true;
        };
        while (!everybody_had_one() && world_.step())
            if (world_.now() > end) return world_.broke("somebody never gets the lock in calm weather");
    }

    World world_;
    SimulatedStore store_;
    FencedRegister register_;
    std::vector<std::unique_ptr<Client>> clients_;
    std::set<LockId> broken_;  ///< Leases that an operator took: their holders do not know it yet.
    bool operator_at_work_ = false;
    bool backups_ = false;
    bool clock_moves_ = false;
    std::uint64_t promised_overlaps_ = 0;
    std::uint64_t faults_ = 0;
};

}  // namespace

Outcome simulate(std::uint64_t seed, Bug bug, Tracing tracing) { return Play(seed, bug, tracing).run(seed); }

std::string story_of(std::uint64_t seed, Bug bug) {
    const Outcome outcome = simulate(seed, bug, Tracing::on);
    return fmt::format("seed {} after {} steps: {}\n{}\n", seed, outcome.steps,
                       outcome.failure.value_or("nothing broke"), fmt::join(outcome.last_notes, "\n"));
}

}  // namespace holdfast::simulation
