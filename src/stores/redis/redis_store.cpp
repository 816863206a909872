#include "stores/redis/redis_store.hpp"

#include "stores/common/gathering.hpp"
#include "stores/common/records.hpp"
#include "stores/common/windowed_events.hpp"
#include "stores/redis/apply.hpp"
#include "stores/redis/grade.hpp"
#include "stores/redis/history.hpp"
#include "stores/redis/read.hpp"
#include "stores/redis/script_text.hpp"
#include "stores/redis/wait.hpp"

#include <algorithm>
#include <atomic>

namespace holdfast::stores {
namespace {

using namespace redis;
using std::chrono::milliseconds;

/// The limit for a string, and for one argument of a command (proto-max-bulk-len).
constexpr std::size_t largest_value = std::size_t{512} << 20;

/// The script writes nothing that was decided more than `oldest_decision` earlier.
constexpr EventWindow event_window{10 * oldest_decision};

class RedisStore final : public WindowedStore {
public:
    RedisStore(std::string url, Address address, const Clock& clock)
        : WindowedStore(clock, event_window),
          url_(std::move(url)),
          remote_(std::move(address), clock),
          hub_(clock, make_wake_source(remote_, locks_)),
          gathering_(clock, [this](auto requests, Deadline deadline) {
              return apply_batch(remote_, locks_, requests, deadline);
          }) {}

    /// Connects, and learns what the server promises.
    Result<void> connect(Deadline deadline) {
        auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return std::unexpected(grading.error());
        grading_ = std::move(*grading);
        lacks_rights_ = !grading_.missing_rights.empty();
        if (const auto found = remote_.confirm(deadline); !found) return std::unexpected(found.error());
        return {};
    }

    /// The server runs one script at a time, so scripts of several threads would only queue up there.
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        if (auto master = remote_.server().expect_master(deadline); !master) return std::unexpected(master.error());
        if (auto may = may_change(deadline); !may) return std::unexpected(may.error());
        return gathering_.apply(requests, deadline);
    }

    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return read_status(remote_, name, deadline);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return read_list(remote_, query, deadline);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        return read_history(remote_, query, deadline);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .pushes = true,
                .commits_batches_as_one = true,
                .shows_only_durable = true,
                .largest_value = largest_value};
    }

    std::optional<StoreId> store_id() const override { return remote_.store_id(); }

    StoreInfo info() const override {
        return {url_,
                remote_.store_id(),
                grading_.grade,
                grading_.reasons,
                remote_.was_used(),
                remote_.server().is_replica()};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        const auto found = remote_.confirm(deadline);
        if (!found) return {{"reachable", false, found.error().message}};
        std::vector<Finding> findings{{"reachable", true, url_}};
        auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return {{"reachable", false, grading.error().message}};
        std::ranges::move(grading->findings, std::back_inserter(findings));
        findings.push_back(examine_writing(remote_.server(), remote_.keys(), deadline));
        findings.push_back(
            {"format", true, *found ? format_in_words(deadline) : "not created yet; the first use will"});
        findings.push_back(examine_records(*this, remote_.clock(), deadline));
        return findings;
    }

private:
    /// The stored format.
    std::string format_in_words(Deadline deadline) {
        const auto answer = remote_.server().ask({"HGET", remote_.keys().store(), "format"}, deadline);
        if (!answer) return answer.error().message;
        std::string format(answer->value().text());
        return format == "1" ? format + "; the first change makes it 2" : format;
    }

    /// Rights that were missing when the store was opened may have been granted since.
    Result<void> may_change(Deadline deadline) {
        if (!lacks_rights_) return {};
        const auto grading = grading_of(remote_.server(), remote_.keys(), deadline);
        if (!grading) return std::unexpected(grading.error());
        if (!grading->missing_rights.empty())
            return std::unexpected(lacking(remote_.server().address(), grading->missing_rights));
        lacks_rights_ = false;
        return {};
    }

    const std::string url_;
    Remote remote_;
    LockCache<KnownLock> locks_{};
    WakeHub hub_;
    Gathering gathering_;
    ServerGrading grading_{};  ///< Set once, before the store is shared.
    std::atomic<bool> lacks_rights_ = false;
};

}  // namespace

Result<std::unique_ptr<Store>> open_redis_store(base::Url url, const Clock& clock) {
    auto address = Address::of(url);
    if (!address) return std::unexpected(address.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto store = std::make_unique<RedisStore>(url.redacted(), std::move(*address), clock);
    if (auto connected = store->connect(Deadline::never()); !connected) return std::unexpected(connected.error());
    return store;
}

std::string_view redis_schema() { return script_text; }

}  // namespace holdfast::stores
