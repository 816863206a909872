#include "stores/etcd/etcd_store.hpp"

#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
#include "stores/etcd/apply.hpp"
#include "stores/etcd/grade.hpp"
#include "stores/etcd/read.hpp"
#include "stores/etcd/wait.hpp"

namespace holdfast::stores {
namespace {

using namespace etcd;

/// The largest request that etcd accepts, unless it was started with another --max-request-bytes.
constexpr std::size_t largest_value = std::size_t{1536} << 10;

class EtcdStore final : public Store {
public:
    EtcdStore(Address address, const Clock& clock)
        : Store(clock),
          clock_(clock),
          remote_(std::move(address), clock),
          hub_(clock, make_wake_source(clock, remote_, wait_predictions_, optimistic_)),
          gathering_(clock, [this](auto requests, Deadline deadline) {
              return apply_batch({clock_, remote_, optimistic_, wait_predictions_}, requests, deadline);
          }) {}

    /// Finds out what the cluster promises, and whether the store is one of ours.
    Result<void> connect() {
        base::CallBudget budget(clock_, Deadline::never());
        auto grading = grading_of(remote_.cluster(), budget);
        if (!grading) return std::unexpected(grading.error());
        grading_ = std::move(*grading);
        const std::vector<Wanted> nothing;
        BatchView view(remote_.keys(), nothing);
        if (auto looked = remote_.look(view, budget, Remote::Order::may_be_stale); !looked)
            return std::unexpected(looked.error());
        if (auto exists = remote_.exists(view); !exists) return std::unexpected(exists.error());
        return {};
    }

    /// The cluster orders all changes one after the other, so those of several threads would only queue up there.
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return gathering_.apply(requests, deadline);
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return etcd::inspect(remote_, name, budget);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return etcd::list(remote_, query, budget);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return etcd::history(remote_, query, budget);
    }

    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return etcd::events(remote_, after, limit, budget);
    }

    Result<EventCursor> end_of_events(Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return etcd::end_of_events(remote_, budget);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .pushes = true,
                // A batch that has too many operations for one transaction becomes several.
                .commits_batches_as_one = false,
                .shows_only_durable = true,
                .clock_resolution = NodeClock::resolution,
                .largest_value = largest_value};
    }

    std::optional<StoreId> store_id() const override { return remote_.store_id(); }

    StoreInfo info() const override {
        return {remote_.cluster().address().shown,
                remote_.store_id(),
                grading_.grade,
                grading_.reasons,
                remote_.was_used(),
                remote_.may_be_stale()};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        auto findings = examine_cluster(remote_, clock_, deadline);
        findings.push_back(examine_records(*this, clock_, deadline));
        return findings;
    }

private:
    const Clock& clock_;
    Remote remote_;
    Optimistic optimistic_{};
    WaitPredictions wait_predictions_{};
    WakeHub hub_;
    base::Grading grading_{};
    Gathering gathering_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_etcd_store(base::Url url, const Clock& clock) {
    auto address = Address::of(std::move(url));
    if (!address) return std::unexpected(address.error());
    auto store = std::make_unique<EtcdStore>(std::move(*address), clock);
    if (auto connected = store->connect(); !connected) return std::unexpected(connected.error());
    return store;
}

std::string_view etcd_schema() { return ""; }

}  // namespace holdfast::stores
