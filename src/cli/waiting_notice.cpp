#include "cli/waiting_notice.hpp"

#include "cli/show.hpp"
#include "client/usual_hold.hpp"
#include "holdfast/lease.hpp"
#include "values/text.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

/// A longer look would delay the notice, and until it is shown nobody knows why the command waits.
constexpr std::chrono::seconds longest_look{1};

}  // namespace

void WaitingNotice::show(const Error& conflict, Store& store, const LockName& asked) {
    if (out_->style().json || out_->style().quiet) return;
    const auto& lock = conflict.holder;
    std::string now = lock && lock->lease ? lock->lease->lock_id.text() : "";
    if (now == shown_) return;
    shown_ = std::move(now);
    out_->note_if_writable("waiting: " + printable(conflict.message) + (lock ? usual(*lock, store, asked) : ""));
}

void WaitingNotice::show_away(const Error& why) {
    if (out_->style().json || has_shown_away_) return;
    has_shown_away_ = true;
    out_->note_if_writable("waiting: " + printable(why.message));
}

std::string WaitingNotice::usual(const LockStatus& lock, Store& store, const LockName& asked) {
    std::optional<std::uint64_t> ahead;
    if (lock.name == asked) {
        // The first answer was given before this waiter was in the queue. Since then the lock has gone to one of those
        // ahead.
        ahead = asked_ == asked ? std::min(ahead_, lock.waiters) : lock.waiters + 1;
        ahead_ = std::max<std::uint64_t>(*ahead, 1) - 1;
        ahead = ahead_;
        asked_ = asked;
    }
    const auto known = client::usual_hold(store, lock, Deadline::in(*clock_, longest_look));
    return known ? "; " + usual_words(lock, *known, ahead) : "";
}

}  // namespace holdfast::cli
