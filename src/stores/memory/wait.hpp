#pragma once

#include "base/interrupt.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/memory/entry.hpp"

#include <mutex>

namespace holdfast::stores::memory {

/// Looks at watched locks. It listens to nothing: all changes are made in this process, and the store announces them to
/// the hub.
class Source final : public WakeSource {
public:
    /// `mutex` guards `entries`; all three must outlive the source.
    Source(std::mutex& mutex, const Entries& entries, const Clock& clock)
        : mutex_(mutex), entries_(entries), clock_(clock) {}

    void add(std::span<const HubWatch> /*watches*/) override {}
    void remove(std::span<const HubWatch> /*watches*/) override {}
    [[nodiscard]] std::vector<Sighting> look(std::span<const HubWatch> watches) override;
    [[nodiscard]] Heard listen(std::chrono::milliseconds most) override;
    void interrupt() override { interrupt_.raise(); }

private:
    std::mutex& mutex_;
    const Entries& entries_;  ///< Guarded by mutex_.
    const Clock& clock_;
    const base::Interrupt interrupt_{};
};

}  // namespace holdfast::stores::memory
