#include "stores/redis/apply.hpp"

#include "stores/common/backoff.hpp"
#include "stores/common/sealed.hpp"
#include "stores/redis/audit_log.hpp"

#include <algorithm>
#include <thread>

namespace holdfast::stores::redis {
namespace {

using Replies = std::vector<holdfast::Reply>;

constexpr Backoff after_conflict{.first = std::chrono::milliseconds{4}, .longest = std::chrono::milliseconds{50}};
/// The answer to a write that came too late shows the present state, so the next try needs no look and no pause.
constexpr int attempts_without_pause = 2;

/// A batch on its way.
class BatchRun {
public:
    BatchRun(Remote& remote, LockCache<KnownLock>& locks, std::span<const Request> requests, Deadline deadline)
        : remote_(remote), locks_(locks), deadline_(deadline), batch_(requests), sights_(batch_.wanted().size()) {}

    Result<Replies> run() {
        auto looked = try_optimistically();
        if (!looked) return std::unexpected(looked.error());
        for (int attempt = 0; !is_done(*looked); ++attempt) {
            if (auto decided = decide(*looked); !decided) return std::unexpected(decided.error());
            if (batch_.changes().empty()) break;
            const Instant time = looked->outline.time;
            looked = commit({time - slewing, time + oldest_decision});
            if (!looked) return std::unexpected(looked.error());
            if (is_done(*looked)) break;
            if (deadline_.passed(remote_.clock()))
                return fail(Errc::store_unavailable, "others changed the lock again and again; nothing was changed");
            if (attempt < attempts_without_pause) continue;
            std::this_thread::sleep_for(after_conflict.pause(attempt - attempts_without_pause));
            looked = look();
            if (!looked) return std::unexpected(looked.error());
        }
        return std::move(replies_);
    }

private:
    static bool is_done(const Looked& looked) { return looked.outline.kind == Outline::Kind::done; }

    Result<Looked> look() { return remote_.look(batch_.wanted(), IfMissing::create, deadline_); }

    /// In one round trip, if everything can be predicted. The answer to a wrong prediction is a look.
    Result<Looked> try_optimistically() {
        const auto arrival = remote_.server_clock().on_arrival();
        const bool repairs = std::ranges::any_of(batch_.wanted(), &Wanted::repairs);
        if (!arrival || !remote_.store_id() || repairs) return look();
        now_ = remote_.clock().judges().value_or(*arrival);
        std::vector<KnownLock> predictions;
        for (std::size_t i = 0; i < sights_.size(); ++i) {
            const LockName& name = batch_.wanted()[i].name;
            const KnownLock& lock = predictions.emplace_back(predict(locks_, name));
            const bool has_queue = lock.view.last_number > 0;
            // Only the head of the queue is known, which is not enough for a second request.
            if (has_queue && !batch_.wanted()[i].is_asked_for_once()) return look();
            sights_[i] = {.value = lock.value, .was_held = lock.view.record.held.has_value(), .has_queue = has_queue};
            batch_.found(name, lock.view);
        }
        replies_ = batch_.run(now_);
        if (!may_send(predictions, replies_, batch_.changes(), now_)) return look();
        return commit(ServerClock::window_for(*arrival));
    }

    /// Decides by what the script saw.
    Result<void> decide(const Looked& looked) {
        now_ = looked.now;
        for (std::size_t i = 0; i < sights_.size(); ++i) {
            const LockName& name = batch_.wanted()[i].name;
            auto view = view_of(looked.answer.value(), i, name, looked.now, sights_[i]);
            if (view && sights_.size() == 1) now_ = not_before(view->record, now_);
            const auto told = tell(batch_, batch_.wanted()[i], std::move(view), [&]() -> Result<kernel::Damage> {
                Traces traces = traces_of(looked.answer.value(), i, sights_[i]);
                if (auto added = add_log(remote_, name, deadline_, traces); !added)
                    return std::unexpected(added.error());
                return damage_in(traces, name, traces.record.has_value(), looked.now);
            });
            if (!told) return told;
        }
        replies_ = batch_.run(now_);
        return {};
    }

    /// Writes what was decided, if nothing has changed.
    Result<Looked> commit(const Window& window) {
        const auto& wanted = batch_.wanted();
        const auto& changes = batch_.changes();
        auto values = values_after(wanted, sights_, changes, now_);
        auto looked = remote_.commit(wanted, {sights_, changes, values, now_}, window, deadline_);
        const bool done = looked && is_done(*looked);
        for (std::size_t i = 0; i < changes.size(); ++i) {
            const Change& change = changes[i];
            const auto at = std::ranges::lower_bound(wanted, change.name, {}, &Wanted::name) - wanted.begin();
            const bool waits = sights_[static_cast<std::size_t>(at)].has_queue || !change.put.empty();
            if (done && change.record && !waits)
                locks_.remember(change.name, {std::move(values[i]), LockView{.record = *change.record}});
            else
                locks_.forget(change.name);
        }
        return looked;
    }

    Remote& remote_;
    LockCache<KnownLock>& locks_;
    const Deadline deadline_;
    Batch batch_;
    std::vector<Sight> sights_;
    Instant now_{};  ///< At which it was decided.
    Replies replies_{};
};

}  // namespace

Result<std::vector<holdfast::Reply>> apply_batch(Remote& remote, LockCache<KnownLock>& locks,
                                                 std::span<const Request> requests, Deadline deadline) {
    return BatchRun(remote, locks, requests, deadline).run();
}

}  // namespace holdfast::stores::redis
