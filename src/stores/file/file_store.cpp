#include "stores/file/file_store.hpp"

#include "base/ownership.hpp"
#include "kernel/step.hpp"
#include "stores/common/windowed_events.hpp"
#include "stores/file/apply.hpp"
#include "stores/file/grade.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/file/read.hpp"
#include "stores/file/schema.hpp"
#include "stores/file/wait.hpp"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>

namespace holdfast::stores {
namespace file {
namespace {

/// A step of one process takes milliseconds from reading the clock to its rename, and some seconds on a disk that is
/// busy. Only a process that is stopped in between takes longer, and it keeps the guard of its locks meanwhile.
constexpr EventWindow event_window{std::chrono::seconds{60}};

/// Some requests of the call were applied, so its error must not say that nothing was changed.
Error after_writes(Error error) {
    if (error.code == Errc::outcome_unknown) return error;
    return {Errc::outcome_unknown, "a part of the batch was applied before this: " + error.message};
}

/// Keeps nothing of the store between calls but its id: each call opens the folder again and sees its present state. So
/// threads share only the id and the subscriptions.
class FileStore final : public WindowedStore {
public:
    FileStore(std::string path, Sync sync, base::Promise promise, base::Presences presences, Bonds::Sessions sessions,
              const Clock& clock)
        : WindowedStore(clock, event_window),
          path_(std::move(path)),
          sync_(sync),
          clock_(clock),
          promise_(std::move(promise)),
          bonds_(std::move(presences), sessions) {}

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        auto store = reach();
        if (!store) return std::unexpected(store.error());
        if (auto upgraded = store->upgrade(); !upgraded) return std::unexpected(upgraded.error());
        const auto locks = store->locks();
        if (!locks) return std::unexpected(locks.error());
        if (!*locks) return fail(Errc::store_unavailable, path_ + " was removed while it was in use");

        std::vector<Reply> replies;
        replies.reserve(requests.size());
        bool has_written = false;
        while (!requests.empty()) {
            const auto some = requests.first(section_size(requests));
            requests = requests.subspan(some.size());
            std::vector<Call> calls;
            {
                Section section(**locks, bonds_, some, clock_, deadline);
                const auto done = run(section, some, replies);
                has_written = has_written || section.has_written();
                if (!done) return std::unexpected(has_written ? after_writes(done.error()) : done.error());
                calls = section.take_calls();
            }
            // After the lock is saved, so that the mark is never there without a lock, even after a crash; and before
            // the answer. If this fails, the lock is still valid, and the next change tries again.
            if (has_written) store->mark_used();
            for (const Call& call : calls) call.bells.ring(call.ticket);
        }
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline /*deadline*/) override {
        const auto locks = find_locks();
        if (!locks) return std::unexpected(locks.error());
        return read_status(*locks, bonds_, name, clock_);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        const auto locks = find_locks();
        if (!locks) return std::unexpected(locks.error());
        if (!*locks) return {};
        return read_list(**locks, bonds_, query, clock_, deadline);
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        const auto locks = find_locks();
        if (!locks) return std::unexpected(locks.error());
        if (!*locks) return {};
        return read_history(**locks, query, clock_, deadline);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.is_shared = true,
                .has_sessions = true,
                .pushes = true,
                // Every lock has a file of its own.
                .commits_batches_as_one = false,
                .shows_only_durable = true,
                .largest_value = longest_record};
    }

    std::optional<int> duplicate_session() const override { return bonds_.duplicate(); }

    void serve_others() override { bonds_.serve_others(); }

    std::optional<StoreId> store_id() const override {
        if (const auto known = known_id()) return known;
        return info().store_id;
    }

    StoreInfo info() const override {
        const auto store = find_store();
        const bool exists = store && *store;
        return {"file:" + path_,
                exists ? std::optional((*store)->store_id) : std::nullopt,
                promise_.grade,
                promise_.reasons,
                exists && (*store)->was_used(),
                exists && !base::may_write(path_)};
    }

    std::vector<Finding> examine(Deadline deadline) override {
        return examine_store(path_, sync_, promise_, clock_, deadline);
    }

private:
    /// The store, created if nobody has used it yet. One that was there and is gone is not created again:
    /// its locks may be held, and an empty store would give them to somebody else.
    Result<StoreFolder> reach() {
        if (!was_reached_) {
            auto made = StoreFolder::make(path_, sync_);
            was_reached_ = made.has_value();
            if (made) remember(made->store_id);
            return made;
        }
        auto found = find_store();
        if (!found) return std::unexpected(found.error());
        if (!*found) return fail(Errc::store_unavailable, path_ + " is gone; nothing was changed");
        return std::move(**found);
    }

    /// The store as it is now; empty as long as there is none.
    [[nodiscard]] Result<std::optional<StoreFolder>> find_store() const {
        auto found = StoreFolder::find(path_, sync_);
        if (found && *found) remember((*found)->store_id);
        return found;
    }

    [[nodiscard]] std::optional<StoreId> known_id() const {
        const std::scoped_lock lock(mutex_);
        return store_id_;
    }

    void remember(const StoreId& store_id) const {
        const std::scoped_lock lock(mutex_);
        store_id_ = store_id;
    }

    static Result<void> run(Section& section, std::span<const Request> requests, std::vector<Reply>& replies) {
        for (const Request& request : requests) {
            auto reply = section.decide(request);
            if (!reply) return std::unexpected(reply.error());
            replies.push_back(std::move(*reply));
        }
        return section.save();
    }

    /// The folder of all locks; empty as long as there is no store.
    [[nodiscard]] Result<std::optional<Folder>> find_locks() const {
        const auto store = find_store();
        if (!store) return std::unexpected(store.error());
        if (!*store) return std::nullopt;
        return (*store)->locks();
    }

    [[nodiscard]] Result<std::optional<LockFolder>> find_lock(const LockName& name) const {
        const auto locks = find_locks();
        if (!locks) return std::unexpected(locks.error());
        if (!*locks) return std::nullopt;
        return LockFolder::find(**locks, folder_name(name));
    }

    const std::string path_;
    const Sync sync_;
    const Clock& clock_;
    const base::Promise promise_;
    Bonds bonds_;
    std::atomic<bool> was_reached_ = false;

    mutable std::mutex mutex_;
    mutable std::optional<StoreId> store_id_{};  ///< Guarded by mutex_. As it was last seen.

    WakeHub hub_{clock_,
                 std::make_unique<Source>([this](const LockName& name) { return find_lock(name); }, bonds_, clock_)};
};

/// Absolute, so that a change of the working directory does not change the store, and without an ending (`/`, `/.`)
/// that would make the system follow a symbolic link.
Result<std::string> absolute_path(const std::string& place) {
    std::error_code error;
    std::string path = std::filesystem::absolute(place, error).string();
    if (error) return fail(Errc::store_unavailable, "cannot find the working directory: " + error.message());
    while (path.size() > 1 && (path.ends_with('/') || path.ends_with("/."))) path.pop_back();
    return path;
}

}  // namespace
}  // namespace file

Result<std::unique_ptr<Store>> open_file_store(base::Url url, const Clock& clock) {
    const auto sync = url.take_switch("sync", true);
    if (!sync) return std::unexpected(sync.error());
    const auto with_sessions = url.take_switch("session", false);
    if (!with_sessions) return std::unexpected(with_sessions.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    if (url.place.empty()) return fail(Errc::usage, "a file store needs a folder: file:DIR or file:///abs/dir");
    auto path = file::absolute_path(url.place);
    if (!path) return std::unexpected(path.error());
    const auto policy = *sync ? file::Sync::on : file::Sync::off;
    if (const auto found = file::StoreFolder::find(*path, policy); !found) return std::unexpected(found.error());
    const auto sessions = *with_sessions ? Bonds::Sessions::on : Bonds::Sessions::off;
    auto promise = base::promise_of(*path, policy);
    auto presences = presences_in(*path + "/presence", promise, sessions);
    if (!presences) return std::unexpected(presences.error());
    return std::make_unique<file::FileStore>(std::move(*path), policy, std::move(promise), std::move(*presences),
                                             sessions, clock);
}

}  // namespace holdfast::stores
