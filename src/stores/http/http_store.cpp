#include "stores/http/http_store.hpp"

#include "json/fields.hpp"
#include "kernel/refusal.hpp"
#include "stores/common/gathering.hpp"
#include "stores/http/apply.hpp"
#include "stores/http/grade.hpp"
#include "stores/http/read.hpp"
#include "stores/http/wait.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace holdfast::stores {
namespace {

using namespace http;

/// What a document of replies says of the store.
struct Seen {
    std::optional<StoreId> store_id{};
    bool was_used = false;
};

Seen seen_in(const json::Node& document) {
    Seen seen;
    json::Fields in(document);
    for (const json::Node& reply : in.array("replies")) {
        json::Fields lock(reply);
        if (auto id = lock.parsed_if<StoreId>("store_id")) seen.store_id = id;
        seen.was_used |= lock.number_if("seq").value_or(0) > 0;
    }
    return seen;
}

class HttpStore final : public Store {
public:
    HttpStore(Address address, const Clock& clock)
        : Store(clock),
          clock_(clock),
          server_(std::move(address)),
          hub_(clock, make_wake_source(clock, server_)),
          gathering_(clock, [this](auto requests, Deadline deadline) { return apply_now(requests, deadline); }) {}

    /// Finds out what the daemon's store is and promises.
    Result<void> connect() {
        const base::CallBudget budget(clock_, Deadline::never());
        auto store = read_store(server_, budget);
        if (!store) return std::unexpected(store.error());
        properties_ = store->properties;
        remember(std::move(store->info));
        return {};
    }

    /// What no store takes is refused here: a daemon would refuse the whole batch. The calls of several threads share
    /// one.
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        std::vector<std::optional<Error>> refused;
        std::ranges::transform(requests, std::back_inserter(refused), kernel::beyond_limits);
        if (std::ranges::none_of(refused, &std::optional<Error>::has_value))
            return gathering_.apply(requests, deadline);
        std::vector<Request> sent;
        for (std::size_t i = 0; i < requests.size(); ++i)
            if (!refused[i]) sent.push_back(requests[i]);
        auto replies = gathering_.apply(sent, deadline);
        if (!replies) return replies;
        std::vector<Reply> all;
        auto next = replies->begin();
        for (auto& error : refused)
            all.push_back(error ? Reply(std::unexpected(std::move(*error))) : std::move(*next++));
        return all;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return read_status(server_, name, base::CallBudget(clock_, deadline));
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return read_list(server_, query, budget);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        base::CallBudget budget(clock_, deadline);
        return read_history(server_, query, budget);
    }

    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) override {
        return read_events(server_, after, limit, base::CallBudget(clock_, deadline));
    }

    Result<EventCursor> end_of_events(Deadline deadline) override {
        return read_end_of_events(server_, base::CallBudget(clock_, deadline));
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override { return properties_; }

    std::optional<StoreId> store_id() const override {
        const std::scoped_lock lock(mutex_);
        return info_.store_id;
    }

    StoreInfo info() const override {
        const std::scoped_lock lock(mutex_);
        return info_;
    }

    std::vector<Finding> examine(Deadline deadline) override {
        return examine_daemon(server_, base::CallBudget(clock_, deadline));
    }

private:
    Result<std::vector<Reply>> apply_now(std::span<const Request> requests, Deadline deadline) {
        const base::CallBudget budget(clock_, deadline);
        auto replies = apply_batch(server_, requests, store_id(),
                                   properties_.shows_only_durable ? Sees::only_durable : Sees::anything, budget,
                                   [&](const json::Node& document) { learn(seen_in(document)); });
        // The first call has created the store. Its replies, where there are some, have named it.
        if (replies && !store_id())
            if (auto store = read_store(server_, budget)) remember(std::move(store->info));
        return replies;
    }

    void remember(StoreInfo info) {
        info.url = server_.address().shown;
        const std::scoped_lock lock(mutex_);
        info_ = std::move(info);
    }

    void learn(const Seen& seen) {
        const std::scoped_lock lock(mutex_);
        if (seen.store_id) info_.store_id = seen.store_id;
        info_.was_used |= seen.was_used;
    }

    const Clock& clock_;
    Server server_;
    StoreProperties properties_{};  ///< Set once, before the store is shared.
    mutable std::mutex mutex_;
    StoreInfo info_{};  ///< Guarded by mutex_.
    WakeHub hub_;
    Gathering gathering_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_http_store(base::Url url, const Clock& clock) {
    auto address = Address::of(std::move(url));
    if (!address) return std::unexpected(address.error());
    auto store = std::make_unique<HttpStore>(std::move(*address), clock);
    if (auto connected = store->connect(); !connected) return std::unexpected(connected.error());
    return store;
}

std::string_view http_schema() { return ""; }

}  // namespace holdfast::stores
