#include "stores/file/file_store.hpp"

#include "base/file_watch.hpp"
#include "kernel/rebase.hpp"
#include "stores/file/apply.hpp"
#include "stores/file/grade.hpp"
#include "stores/file/listing.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/file/schema.hpp"
#include "stores/file/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <tuple>

namespace holdfast::stores {
namespace file {
namespace {

using std::chrono::milliseconds;

/// How long to sleep where nothing can be watched: a lock that does not exist yet, or no descriptor left.
constexpr milliseconds nap{20};

/// Some requests of the call were applied, so its error can no longer mean that nothing was.
Error after_writes(Error error) {
    if (error.code == Errc::outcome_unknown) return error;
    return {Errc::outcome_unknown, "a part of the batch was applied before this: " + error.message};
}

/// Keeps nothing of the store between calls: each opens the folder anew and sees what is there now. Threads
/// therefore share nothing either.
class FileStore final : public Store {
public:
    FileStore(std::string path, Sync sync, const Clock& clock)
        : path_(std::move(path)), sync_(sync), clock_(clock), promise_(base::promise_of(path_, sync_)) {}

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        const auto store = reach();
        if (!store) return std::unexpected(store.error());
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
                Section section(**locks, some, clock_, deadline);
                const auto done = run(section, some, replies);
                has_written = has_written || section.has_written();
                if (!done) return std::unexpected(has_written ? after_writes(done.error()) : done.error());
                calls = section.take_calls();
            }
            // After the lock and before the answer: where the mark is, there is a lock, whoever looks and whatever
            // crashes. Without it the lock is as good, and the next change tries again.
            if (has_written) store->mark_used();
            for (const Call& call : calls) call.bells.ring(call.ticket);
        }
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline /*deadline*/) override {
        const auto lock = find_lock(name);
        if (!lock) return std::unexpected(lock.error());
        if (!*lock) return kernel::status_of(kernel::blank(name), 0, clock_.wall());
        const auto saved = (*lock)->load();
        if (!saved) return std::unexpected(saved.error());
        return status_of(**lock, *saved ? **saved : SavedLock{kernel::blank(name), {}, 0, {}});
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        std::vector<LockStatus> found;
        const auto add = [&](const LockFolder& lock, const SavedLock& saved) -> Result<More> {
            const kernel::Record& record = saved.record;
            if (query.limit && found.size() >= *query.limit) return More::no;
            if (!query.with_free && !record.held) return More::yes;
            if (query.changed_since && record.changed_at < *query.changed_since) return More::yes;
            auto status = status_of(lock, saved);
            if (!status) return std::unexpected(status.error());
            found.push_back(std::move(*status));
            return More::yes;
        };
        const auto done = for_each_lock({query.prefix, query.after}, deadline, add);
        if (!done) return std::unexpected(done.error());
        return found;
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        if (query.name) return history_of_one(*query.name, query);
        std::vector<AuditEvent> found;
        const auto add = [&](const LockFolder& lock, const SavedLock& saved) -> Result<More> {
            auto events = lock.events_of(saved, {.since = query.since});
            if (!events) return std::unexpected(events.error());
            std::ranges::move(*events, std::back_inserter(found));
            return More::yes;
        };
        if (auto done = for_each_lock({}, deadline, add); !done) return std::unexpected(done.error());
        std::ranges::sort(found, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
        if (query.limit && found.size() > *query.limit) {
            const auto surplus = static_cast<std::ptrdiff_t>(found.size() - *query.limit);
            const auto from = query.which == HistoryQuery::Which::newest ? found.begin() : found.end() - surplus;
            found.erase(from, from + surplus);
        }
        return found;
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            const auto lock = find_lock(watch.name);
            if (!lock) return std::unexpected(lock.error());
            if (*lock && watch.ticket) {
                if (auto waited = wait_in_line(bells_of((*lock)->folder()), watch, deadline); !waited)
                    return std::unexpected(waited.error());
                return look_whose_it_is(watch, clock_, deadline);
            }
            if (*lock) {
                if (auto waited = wait_for_seq(**lock, watch, deadline); !waited)
                    return std::unexpected(waited.error());
                return std::nullopt;
            }
            if (watch.seen_seq != 0) return std::nullopt;
            std::this_thread::sleep_for(std::min(nap, deadline.remaining(clock_)));
        }
        return std::nullopt;
    }

    StoreInfo info() const override {
        const auto store = StoreFolder::find(path_, sync_);
        const bool exists = store && *store;
        return {"file:" + path_, exists ? std::optional((*store)->store_id) : std::nullopt, promise_.grade,
                promise_.reasons, exists && (*store)->was_used()};
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
            return made;
        }
        auto found = StoreFolder::find(path_, sync_);
        if (!found) return std::unexpected(found.error());
        if (!*found) return fail(Errc::store_unavailable, path_ + " is gone; nothing was changed");
        return std::move(**found);
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
        const auto store = StoreFolder::find(path_, sync_);
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

    [[nodiscard]] Result<LockStatus> status_of(const LockFolder& lock, const SavedLock& saved) const {
        const kernel::ClockMark mark = kernel::mark_of(clock_);
        const Instant now = clock_.wall();
        const auto queue = TicketQueue::load(lock.folder(), mark, now);
        if (!queue) return std::unexpected(queue.error());
        return kernel::status_of(kernel::rebase(saved.record, saved.saved_under, mark, now), queue->waiters(), now);
    }

    [[nodiscard]] Result<std::vector<AuditEvent>> history_of_one(const LockName& name,
                                                                 const HistoryQuery& query) const {
        const auto lock = find_lock(name);
        if (!lock) return std::unexpected(lock.error());
        if (!*lock) return std::vector<AuditEvent>{};
        const auto saved = (*lock)->load();
        if (!saved) return std::unexpected(saved.error());
        return *saved ? (*lock)->events_of(**saved, query) : std::vector<AuditEvent>{};
    }

    enum class More { no, yes };

    /// Visits the locks that have a record, in the order of their names, until it is told that no more are wanted.
    template <class Visit>
    Result<void> for_each_lock(const NameRange& range, Deadline deadline, const Visit& visit) const {
        const auto locks = find_locks();
        if (!locks) return std::unexpected(locks.error());
        if (!*locks) return {};
        const auto folders = folders_of(**locks, range, clock_, deadline);
        if (!folders) return std::unexpected(folders.error());
        for (const std::string& folder : *folders) {
            if (deadline.passed(clock_)) return std::unexpected(out_of_time());
            const auto opened = LockFolder::find(**locks, folder);
            if (!opened) return std::unexpected(opened.error());
            if (!*opened) continue;
            const auto saved = (*opened)->load();
            if (!saved) return std::unexpected(saved.error());
            if (!*saved) continue;
            const Result<More> visited = visit(**opened, **saved);
            if (!visited) return std::unexpected(visited.error());
            if (*visited == More::no) break;
        }
        return {};
    }

    [[nodiscard]] Result<void> wait_for_seq(const LockFolder& lock, const Watch& watch, Deadline deadline) const {
        // The watch before the look: what changes in between is not missed.
        auto changes = base::FileWatch::on(lock.folder().path());
        while (true) {
            const auto saved = lock.load();
            if (!saved) return std::unexpected(saved.error());
            const std::uint64_t seq = *saved ? (*saved)->record.seq : 0;
            if (seq != watch.seen_seq || deadline.passed(clock_) || watch.stop.stop_requested()) return {};
            if (changes)
                static_cast<void>(changes->wait(clock_, deadline, watch.stop));
            else
                std::this_thread::sleep_for(std::min(nap, deadline.remaining(clock_)));
        }
    }

    /// Sleeps until the ticket is rung, or is found to be first at an open lock, or is not found.
    [[nodiscard]] Result<void> wait_in_line(const base::Doorbells& bells, const Watch& watch, Deadline deadline) const {
        const auto bell = bells.hang(*watch.ticket);
        Lookout lookout(*watch.ticket, clock_);
        while (!deadline.passed(clock_) && !watch.stop.stop_requested()) {
            // Found anew for every look, so that a long queue of threads does not keep as many folders open.
            const auto lock = find_lock(watch.name);
            if (!lock) return std::unexpected(lock.error());
            if (!*lock) return {};
            // Before the look: what it says is true from then on.
            const Boottime before = clock_.boottime();
            const auto sleep = lookout.look(**lock);
            if (!sleep) return std::unexpected(sleep.error());
            if (!*sleep) return {};
            const Deadline look{std::min(deadline.at, before + **sleep)};
            if (!bell)
                std::this_thread::sleep_for(std::min(nap, look.remaining(clock_)));
            else if (bell->wait(clock_, look, watch.stop))
                return {};
        }
        return {};
    }

    const std::string path_;
    const Sync sync_;
    const Clock& clock_;
    const base::Promise promise_;
    std::atomic<bool> was_reached_ = false;
};

/// Absolute, so that a change of the working directory does not change the store, and without an ending
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
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    if (url.place.empty()) return fail(Errc::usage, "a file store needs a folder: file:DIR or file:///abs/dir");
    auto path = file::absolute_path(url.place);
    if (!path) return std::unexpected(path.error());
    const auto policy = *sync ? file::Sync::on : file::Sync::off;
    if (const auto found = file::StoreFolder::find(*path, policy); !found) return std::unexpected(found.error());
    return std::make_unique<file::FileStore>(std::move(*path), policy, clock);
}

}  // namespace holdfast::stores
