#pragma once

#include "base/turn.hpp"
#include "stores/common/host_listener.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/sqlite/checked_store.hpp"
#include "stores/sqlite/place.hpp"

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace holdfast::stores::sqlite {

/// Listens for the waiters and holders of one Store object: at one doorbell for those with a ticket or a lease, and at
/// the gate's file, which every change touches, for the others.
class Source final : public WakeSource {
public:
    /// Looks at the store, which is null while nobody has created it.
    using Read = std::function<void(Result<CheckedStore*> store)>;
    using WithStore = std::function<void(const Read& read)>;

    Source(const Place& place, WithStore with_store, const Bonds& bonds, const Clock& clock);

    void add(std::span<const HubWatch> watches) override;
    void remove(std::span<const HubWatch> watches) override;
    [[nodiscard]] std::vector<Sighting> look(std::span<const HubWatch> watches) override;
    [[nodiscard]] Heard listen(std::chrono::milliseconds most) override;
    void interrupt() override { listener_.interrupt(); }

private:
    struct View;

    void listen_for(const HubWatch& watch);
    void look_at_some(std::span<const HubWatch> watches, std::vector<Sighting>& seen);
    [[nodiscard]] Result<Sighting> look_at(const HubWatch& watch, CheckedStore* store, View& view);
    [[nodiscard]] Result<void> read_record(const LockName& name, CheckedStore& store, View& view) const;
    [[nodiscard]] std::chrono::milliseconds next_look_at_lease() const;
    [[nodiscard]] Result<Sighting> look_in_line(const HubWatch& watch, CheckedStore& store, View& view);
    [[nodiscard]] Result<base::Standing> standing_of(const HubWatch& watch, CheckedStore& store, const View& view);

    const std::string gate_path_;
    const base::Doorbells bells_;
    const WithStore with_store_;
    const Bonds& bonds_;
    const Clock& clock_;
    const PollTicks ticks_;
    HostListener listener_;
    int gate_ = -1;  ///< The number of the inotify watch; negative if there is none.
    std::unordered_set<std::uint64_t> without_ticket_{};
    /// When each ticket expires that was found in the queue. Until then the record or a ring announces its removal, so
    /// that the queue need not be searched for it.
    std::unordered_map<std::uint64_t, Boottime> queued_until_{};
};

}  // namespace holdfast::stores::sqlite
