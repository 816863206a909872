#include "base/real_clock.hpp"
#include "guards/sql/fence.hpp"
#include "holdfast/fence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds to_connect{15'000};
constexpr milliseconds to_ask_the_store{5000};
constexpr milliseconds idle_without_lease{30'000};
/// Of cancelling: a request that arrives before its statement has no effect.
constexpr milliseconds between_cancels{200};
/// `holdfast_assert` in PostgreSQL, and a trigger that calls it.
constexpr auto refused_by_assert = "HF080";

}  // namespace

/// The connection, and what ends its statement when the lease is lost.
class FencedDatabase::Impl {
public:
    Impl(std::unique_ptr<sql::Session> session, std::unique_ptr<guards::fence::Fence> fence, FenceClaim claim,
         FenceOptions options)
        : session_(std::move(session)),
          fence_(std::move(fence)),
          claim_(std::move(claim)),
          options_(std::move(options)),
          on_lost_(options_.lost, [this] { cancel_until_idle(); }) {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() { rollback(); }

    [[nodiscard]] const FenceClaim& claim() const { return claim_; }

    [[nodiscard]] Result<void> seal() {
        auto sealed = while_held([&] { return fence_->seal(claim_, options_.patience, Deadline::never()); });
        if (!sealed && sealed.error().code == Errc::token_regressed && is_stale())
            sealed = fail(Errc::fencing_mismatch, fmt::format("a newer holder of \"{}\" was here: {}",
                                                              claim_.name.text(), sealed.error().message));
        return reported(std::move(sealed));
    }

    [[nodiscard]] Result<void> begin(Deadline deadline) {
        if (open_) return fail(Errc::usage, "a transaction is open already");
        const milliseconds left = options_.lease_left ? options_.lease_left() : idle_without_lease;
        auto begun = reported(while_held([&] { return fence_->begin(claim_, left, deadline); }));
        open_ = begun.has_value();
        return begun;
    }

    [[nodiscard]] Result<SqlAnswer> run(sql::Command command, Deadline deadline) {
        return while_held([&]() -> Result<SqlAnswer> {
            auto answer = session_->run(command, deadline);
            if (answer) return std::move(*answer);
            if (answer.error().code == refused_by_assert) return fail(Errc::fencing_mismatch, answer.error().message);
            return std::unexpected(sql::error_of(answer.error(), "run the statement"));
        });
    }

    [[nodiscard]] Result<void> commit(Deadline deadline) {
        if (!open_) return fail(Errc::usage, "no transaction is open");
        auto committed = while_held([&] { return fence_->commit(deadline); });
        if (!committed) rollback();
        open_ = false;
        return committed;
    }

    void rollback() {
        if (open_) fence_->rollback();
        open_ = false;
    }

    [[nodiscard]] Result<SqlAnswer> run_by_connection(std::string_view sql, Deadline deadline) {
        if (open_) return fail(Errc::usage, "a statement that commits by itself cannot run in a transaction");
        auto entered = reported(while_held([&] { return fence_->enter_connection(claim_, deadline); }));
        if (!entered) return std::unexpected(entered.error());
        auto answer = run({.text = std::string(sql), .values = {}}, deadline);
        fence_->leave_connection();
        return answer;
    }

private:
    /// Runs `call` unless the lease is lost; a loss meanwhile cancels its statement.
    template <class Call>
    [[nodiscard]] auto while_held(Call call) -> decltype(call()) {
        {
            const std::scoped_lock lock(mutex_);
            if (options_.lost.stop_requested()) return std::unexpected(loss());
            running_ = true;
        }
        auto result = call();
        const std::scoped_lock lock(mutex_);
        running_ = false;
        idle_.notify_all();
        // Also where the server had finished before it was asked: the caller must stop now.
        const bool undecided = !result && result.error().code != Errc::outcome_unknown;
        if (undecided && options_.lost.stop_requested()) return std::unexpected(loss());
        return result;
    }

    /// The store has given the lock to somebody else since: then it is this lease that is old, and not the store.
    [[nodiscard]] bool is_stale() const {
        if (options_.store == nullptr) return false;
        const Check check{.name = claim_.name, .token = claim_.token, .lock_id = claim_.lock_id};
        const auto current = options_.store->apply_one(check, Deadline::in(clock(), to_ask_the_store));
        return !current && current.error().code == Errc::fencing_mismatch;
    }

    [[nodiscard]] const Clock& clock() const { return *options_.clock; }

    [[nodiscard]] Error loss() const {
        return {Errc::lock_expired,
                fmt::format("the lease of \"{}\" is lost: the statement was not run or was cancelled, and its "
                            "transaction is rolled back",
                            claim_.name.text())};
    }

    void cancel_until_idle() {
        std::unique_lock lock(mutex_);
        while (running_) {
            lock.unlock();
            session_->cancel();
            lock.lock();
            idle_.wait_for(lock, between_cancels, [&] { return !running_; });
        }
    }

    /// A refused write is an event in the audit log of its lock. That it cannot be written does not change the answer.
    [[nodiscard]] Result<void> reported(Result<void> result) const {
        if (result || result.error().code != Errc::fencing_mismatch || options_.store == nullptr) return result;
        (void)options_.store->apply_one(ReportFenced{.name = claim_.name,
                                                     .token = claim_.token,
                                                     .lock_id = claim_.lock_id,
                                                     .holder = Holder::this_process(),
                                                     .resource = session_->place(),
                                                     .reason = "a write was refused by the fence"},
                                        Deadline::in(clock(), to_ask_the_store));
        return result;
    }

    std::unique_ptr<sql::Session> session_;
    std::unique_ptr<guards::fence::Fence> fence_;
    FenceClaim claim_;
    FenceOptions options_;
    bool open_ = false;  ///< A transaction of the user's is.

    std::mutex mutex_;  ///< Guards running_.
    std::condition_variable idle_{};
    bool running_ = false;

    /// The last, so that it goes first: it uses all the others.
    std::stop_callback<std::function<void()>> on_lost_;
};

FencedDatabase::FencedDatabase(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FencedDatabase::FencedDatabase(FencedDatabase&&) noexcept = default;
FencedDatabase& FencedDatabase::operator=(FencedDatabase&&) noexcept = default;
FencedDatabase::~FencedDatabase() = default;

Result<FencedDatabase> FencedDatabase::seal(std::string_view url, const FenceClaim& claim, FenceOptions options) {
    if (options.clock == nullptr) options.clock = options.store ? &options.store->clock() : &base::real_clock();
    const Clock& clock = *options.clock;
    const Deadline soon = Deadline::in(clock, to_connect);
    auto session = sql::open_session(url, sql::IfAbsent::refuse, clock, soon);
    if (!session) return std::unexpected(session.error());
    auto fence = guards::fence::Fence::of(**session, clock, soon);
    if (!fence) return std::unexpected(fence.error());
    auto impl = std::make_unique<Impl>(std::move(*session), std::move(*fence), claim, std::move(options));
    if (auto sealed = impl->seal(); !sealed) return std::unexpected(sealed.error());
    return FencedDatabase(std::move(impl));
}

Result<void> FencedDatabase::begin(Deadline deadline) { return impl_->begin(deadline); }

Result<SqlAnswer> FencedDatabase::run(std::string_view sql, std::vector<SqlValue> values, Deadline deadline) {
    return impl_->run({.text = std::string(sql), .values = std::move(values)}, deadline);
}

Result<void> FencedDatabase::commit(Deadline deadline) { return impl_->commit(deadline); }
void FencedDatabase::rollback() { impl_->rollback(); }

Result<SqlAnswer> FencedDatabase::run_by_connection(std::string_view sql, Deadline deadline) {
    return impl_->run_by_connection(sql, deadline);
}

const FenceClaim& FencedDatabase::claim() const { return impl_->claim(); }

Result<FenceClaim> claim_of(const Hold& hold) {
    if (!hold.store_id()) return fail(Errc::config, "the store of the lock has no store_id");
    return FenceClaim{hold.name(), *hold.store_id(), hold.token(), hold.credentials().lock_id};
}

Result<FencedHold> hold_fenced(Store& store, const LockName& name, std::string_view url, const HoldOptions& options) {
    auto granted = hold(store, name, options);
    if (!granted) return std::unexpected(granted.error());
    auto held = std::make_unique<Hold>(std::move(*granted));
    const auto claim = claim_of(*held);
    if (!claim) return std::unexpected(claim.error());
    const Clock& clock = options.clock == nullptr ? store.clock() : *options.clock;
    FenceOptions fence;
    fence.lost = held->lost();
    fence.lease_left = [&hold = *held, &clock] {
        return std::max(hold.deadline() - clock.boottime(), milliseconds{0});
    };
    fence.store = &store;
    fence.clock = options.clock;
    auto database = FencedDatabase::seal(url, *claim, std::move(fence));
    if (!database) {
        // The lease has protected nothing. That it cannot be given back now does not change the answer.
        (void)held->release();
        return std::unexpected(database.error());
    }
    return FencedHold(std::move(held), std::move(*database));
}

}  // namespace holdfast
