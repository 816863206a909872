#pragma once

#include "holdfast/audit.hpp"
#include "kernel/codec.hpp"
#include "kernel/step.hpp"
#include "simulation/bugs.hpp"
#include "simulation/world.hpp"

#include <map>

namespace holdfast::simulation {

/// By whose clock a store judges.
enum class ClockKind {
    host,    ///< As files and SQLite: a step of the wall clock is noticed and made good.
    server,  ///< As a server: its clock is trusted, and moving it moves every deadline.
};

/// One lock. The protocol and the byte form are the real ones; disk and clock are not.
class SimulatedStore {
public:
    SimulatedStore(World& world, ClockKind kind, Bug bug);

    /// Decides and saves in one step. Empty while the store is down.
    std::optional<Reply> apply(const Request& request);

    [[nodiscard]] std::optional<LockId> holder() const;
    void go_down(Millis time) { up_again_ = world_.now() + time; }
    void step_clock(Millis step);
    /// Keeps a copy; the second call goes back to it.
    void copy_or_restore();

    /// Leases may have ended early, by no fault of the protocol.
    [[nodiscard]] bool let_time_jump() const { return clock_jumped_ || restored_; }
    [[nodiscard]] std::uint64_t grants() const { return grants_; }
    [[nodiscard]] Millis set_back() const { return set_back_; }
    void verify_audit() const;

private:
    struct Saved {
        kernel::Bytes record;
        std::map<LockId, kernel::Bytes> tickets{};
        Millis offset{0};  ///< Of the wall clock when this was written.
        std::vector<AuditEvent> events{};
    };

    [[nodiscard]] Instant wall() const { return Instant{epoch + world_.now() + offset_}; }
    [[nodiscard]] kernel::ClockMark mark(Millis offset) const { return {"boot", offset}; }
    [[nodiscard]] kernel::Record record() const;
    [[nodiscard]] std::vector<kernel::Ticket> tickets() const;
    [[nodiscard]] kernel::State load(const Request& request) const;
    void save(const kernel::State& before, const kernel::Decision& decision);
    void check_grant(const AuditEvent& event);
    Reply renewed_for_anybody(const Renew& request);

    static constexpr Millis epoch{1'700'000'000'000};

    World& world_;
    const ClockKind kind_;
    const Bug bug_;
    Millis offset_{0};
    Millis up_again_{0};
    Millis set_back_{0};
    Saved saved_;
    std::optional<Saved> copy_;
    bool clock_jumped_ = false;
    bool restored_ = false;
    std::uint64_t grants_ = 0;
    FencingToken last_token_{};
};

}  // namespace holdfast::simulation
