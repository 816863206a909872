#pragma once

#include "kernel/renewal_plan.hpp"
#include "simulation/fenced_register.hpp"
#include "simulation/store.hpp"

namespace holdfast::simulation {

/// A process that takes the lock, works behind the fence, lets go, and begins again. It follows the rules of
/// src/client step by step, but sleeps in simulated time; when to renew and when to stop is the kernel's plan.
class Client {
public:
    /// Told whenever the client begins, or goes on, to believe that it holds the lock.
    using Believes = std::function<void(const Client&)>;

    Client(World& world, SimulatedStore& store, FencedRegister& resource, Bug bug, int number, Believes believes);

    void start() { idle(); }

    // What happens to it.
    void stop_for(Millis time);  ///< SIGSTOP: nothing is done, and time passes.
    void crash();                ///< All memory is gone; a new process begins later.
    void cut_off(Millis time, bool requests, bool answers);
    void calm_down();

    [[nodiscard]] bool believes() const { return phase_ == Phase::holding && local() < plan_.deadline(); }
    [[nodiscard]] const LockId& lock_id() const { return as_.lock_id; }
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] int finished() const { return finished_; }  ///< Times that it has held and let go.

private:
    enum class Phase { idle, asking, holding, releasing };
    using Then = std::function<void(Boottime sent_at, std::optional<Reply> reply)>;

    [[nodiscard]] Boottime local() const;
    void after(Millis delay, const Action& action);
    void awake(std::uint64_t life, const Action& action);
    void call(const Request& request, Millis timeout, const Then& then);
    void use_register(const Action& operation, const Action& then);

    void idle();
    void begin();
    void ask();
    void on_grant(Boottime sent_at, const Outcome& outcome);
    void keep();
    void renewed(Boottime sent_at, const std::optional<Reply>& reply);
    void work(std::uint64_t writes);
    void let_go(int tries);

    World& world_;
    SimulatedStore& store_;
    FencedRegister& resource_;
    const Bug bug_;
    const int number_;
    const Believes on_belief_;
    const std::int64_t rate_;  ///< Of its clock, in thousandths: none runs exactly right.

    std::uint64_t life_ = 1;  ///< Rises with every crash and every attempt: what was planned before is off.
    std::uint64_t calls_ = 0;
    std::uint64_t open_call_ = 0;
    Millis stopped_until_{0};
    Millis requests_cut_until_{0};
    Millis answers_cut_until_{0};
    int finished_ = 0;

    Phase phase_ = Phase::idle;
    Credentials as_;
    Ttl ttl_;
    Boottime patience_{};
    FencingToken token_{};
    kernel::RenewalPlan plan_{};
};

}  // namespace holdfast::simulation
