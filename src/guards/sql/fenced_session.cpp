#include "guards/sql/fenced_session.hpp"

#include <atomic>
#include <thread>

namespace holdfast::guards {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds to_seal{30'000};
constexpr milliseconds between_cancels{50};
constexpr int most_cancels = 400;

}  // namespace

Result<FencedSession> FencedSession::open(FencedSessionOptions options) {
    FencedSession fenced(std::move(options));
    if (auto connected = fenced.connect(); !connected) return std::unexpected(connected.error());
    if (fenced.fence_) {
        const Deadline patient = Deadline::in(fenced.clock(), to_seal * 2);
        if (auto sealed = fenced.fence_->seal(*fenced.claim(), to_seal, patient); !sealed)
            return std::unexpected(sealed.error());
    }
    return fenced;
}

Result<void> FencedSession::connect() {
    auto session = options_.connect();
    if (!session) return std::unexpected(session.error());
    session_ = *std::move(session);
    if (!options_.claim) return {};
    auto fence = fence::Fence::of(*session_, clock(), soon());
    if (!fence) return std::unexpected(fence.error());
    fence_ = *std::move(fence);
    return {};
}

Result<void> FencedSession::reconnect() {
    fence_.reset();
    session_.reset();
    return connect();
}

Result<void> FencedSession::begin() {
    if (fence_) return fence_->begin(*options_.claim, options_.ttl, soon());
    const char* const text = session_->dialect() == SqlDialect::sqlite ? "BEGIN IMMEDIATE" : "START TRANSACTION";
    const auto begun = session_->run({.text = text, .values = {}}, soon());
    if (!begun) return std::unexpected(sql::error_of(begun.error(), "begin a transaction"));
    return {};
}

Result<void> FencedSession::commit() {
    if (fence_) return fence_->commit(soon());
    const auto done = session_->run({.text = "COMMIT", .values = {}}, soon());
    if (done) return {};
    if (done.error().kind == sql::ErrorClass::connection_lost)
        return fail(Errc::outcome_unknown,
                    "nobody knows whether the transaction was committed: " + done.error().message);
    rollback();
    return std::unexpected(sql::error_of(done.error(), "commit"));
}

void FencedSession::rollback() {
    if (fence_) return fence_->rollback();
    if (session_->is_usable()) static_cast<void>(session_->run({.text = "ROLLBACK", .values = {}}, soon()));
}

Result<void> FencedSession::enter_connection() {
    return fence_ ? fence_->enter_connection(*options_.claim, soon()) : Result<void>();
}

void FencedSession::leave_connection() {
    if (fence_) fence_->leave_connection();
}

bool FencedSession::run_cancellable(const std::function<void()>& call) {
    std::atomic<bool> running{true};
    const auto owner = std::this_thread::get_id();
    // From the thread that hears of the loss. Repeated, because one that comes before the statement has no effect.
    const std::stop_callback cancel(options_.stop, [&] {
        for (int i = 0; running && i < most_cancels && std::this_thread::get_id() != owner; ++i) {
            session_->cancel();
            std::this_thread::sleep_for(between_cancels);
        }
    });
    if (is_stopped()) {
        running = false;
        return false;
    }
    call();
    running = false;
    return true;
}

}  // namespace holdfast::guards
