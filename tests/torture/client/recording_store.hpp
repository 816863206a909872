#pragma once

#include "holdfast/store.hpp"
#include "torture/client/recorder.hpp"

namespace torture {

/// Passes every request on, and records it before and its answer after: whatever the library asks on its own, renewals,
/// repeats and cancellations included; and the grants that come without a request.
class RecordingStore final : public holdfast::Store {
public:
    /// Both must outlive it.
    RecordingStore(holdfast::Store& inner, Recorder& recorder)
        : Store(inner.clock()), inner_(inner), recorder_(recorder) {}

    [[nodiscard]] holdfast::Result<std::vector<holdfast::Reply>> apply(std::span<const holdfast::Request> requests,
                                                                       holdfast::Deadline deadline) override;
    [[nodiscard]] holdfast::Result<holdfast::LockStatus> inspect(const holdfast::LockName& name,
                                                                 holdfast::Deadline deadline) override {
        return inner_.inspect(name, deadline);
    }
    [[nodiscard]] holdfast::Result<std::vector<holdfast::LockStatus>> list(const holdfast::ListQuery& query,
                                                                           holdfast::Deadline deadline) override {
        return inner_.list(query, deadline);
    }
    [[nodiscard]] holdfast::Result<std::vector<holdfast::AuditEvent>> history(const holdfast::HistoryQuery& query,
                                                                              holdfast::Deadline deadline) override {
        return inner_.history(query, deadline);
    }
    [[nodiscard]] holdfast::Result<holdfast::EventPage> events(const holdfast::EventCursor& after, std::size_t limit,
                                                               holdfast::Deadline deadline) override {
        return inner_.events(after, limit, deadline);
    }
    [[nodiscard]] holdfast::Result<holdfast::EventCursor> end_of_events(holdfast::Deadline deadline) override {
        return inner_.end_of_events(deadline);
    }
    [[nodiscard]] holdfast::Result<std::optional<holdfast::HandedOn>> wait_for_change(
        const holdfast::Watch& watch, holdfast::Deadline deadline) override;
    [[nodiscard]] holdfast::Result<std::unique_ptr<holdfast::Subscription>> subscribe(
        const holdfast::Watch& watch, holdfast::WatchFired fired) override {
        return inner_.subscribe(watch, std::move(fired));
    }
    [[nodiscard]] holdfast::StoreProperties properties() const override { return inner_.properties(); }
    [[nodiscard]] holdfast::StoreInfo info() const override { return inner_.info(); }
    [[nodiscard]] std::optional<holdfast::StoreId> store_id() const override { return inner_.store_id(); }
    [[nodiscard]] std::vector<holdfast::Finding> examine(holdfast::Deadline deadline) override {
        return inner_.examine(deadline);
    }

private:
    holdfast::Store& inner_;
    Recorder& recorder_;
};

/// `,"why":"E_…"`.
[[nodiscard]] std::string because(const holdfast::Error& error);
/// `unknown` for the one error that leaves it open, `refused` for all others: they say that nothing was changed.
[[nodiscard]] std::string_view result_of(const holdfast::Error& error);

}  // namespace torture
