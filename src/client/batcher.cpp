#include "client/batcher.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

Error too_late() { return {Errc::store_unavailable, "the request was not sent to the store before its time was over"}; }

}  // namespace

Batcher::Batcher(Loop& loop, RunCall run, Store& store, BatchObserver& observer, const Limits& limits)
    : loop_(loop),
      run_(std::move(run)),
      store_(store),
      observer_(observer),
      limits_(limits),
      info_(std::make_shared<const StoreInfo>(store.info())) {}

bool Batcher::submit(std::vector<Request> requests, Deadline deadline, Done done) {
    // One call that is larger than the queue would never fit.
    if (waiting_ > 0 && waiting_ + requests.size() > limits_.waiting) {
        observer_.refused_at_queue();
        return false;
    }
    waiting_ += requests.size();
    calls_.push_back({std::move(requests), deadline, std::move(done)});
    observer_.queued(waiting_);
    send_next();
    return true;
}

bool Batcher::is_busy(const Call& call) const {
    return !busy_.empty() &&
           std::ranges::any_of(call.requests, [&](const Request& request) { return busy_.contains(name_of(request)); });
}

/// Null if nothing can be sent now.
std::shared_ptr<Batcher::Batch> Batcher::take_batch() {
    auto batch = std::make_shared<Batch>();
    std::vector<Call> late;
    std::set<LockName> skipped;
    for (auto call = calls_.begin(); call != calls_.end();) {
        const bool is_late = call->deadline.passed(store_.clock());
        const bool fits = batch->calls.empty() || batch->requests.size() + call->requests.size() <= limits_.batch;
        if (!is_late && !fits) break;
        const auto is_behind = [&](const Request& request) { return skipped.contains(name_of(request)); };
        if (!is_late && (is_busy(*call) || std::ranges::any_of(call->requests, is_behind))) {
            for (const Request& request : call->requests) skipped.insert(name_of(request));
            ++call;
            continue;
        }
        waiting_ -= call->requests.size();
        if (is_late) {
            late.push_back(std::move(*call));
        } else {
            batch->deadline.at = std::min(batch->deadline.at, call->deadline.at);
            std::ranges::move(call->requests, std::back_inserter(batch->requests));
            batch->calls.push_back(std::move(*call));
        }
        call = calls_.erase(call);
    }
    for (Call& call : late) give_up(call);
    return batch->calls.empty() ? nullptr : batch;
}

void Batcher::give_up(Call& call) {
    // Later, because a caller may submit the next one from inside.
    loop_.post([done = std::move(call.done), info = info_, now = store_.clock().boottime()]() mutable {
        done({std::unexpected(too_late()), info, now});
    });
}

void Batcher::send_next() {
    while (!calls_.empty() && under_way_.size() < limits_.under_way && (under_way_.empty() || may_overtake_)) {
        const auto batch = take_batch();
        if (!batch) return;
        send(batch);
    }
}

void Batcher::send(const std::shared_ptr<Batch>& batch) {
    for (const Request& request : batch->requests) busy_.insert(name_of(request));
    under_way_.insert(batch);
    may_overtake_ = false;
    batch->sent_at = store_.clock().boottime();
    batch->started = steady_clock::now();
    slow_ = loop_.after(limits_.slow, [this] {
        may_overtake_ = true;
        send_next();
    });
    const bool is_running = run_([this, batch] {
        auto replies = store_.apply(batch->requests, batch->deadline);
        auto info = std::make_shared<const StoreInfo>(store_.info());
        loop_.post([this, batch, replies = std::move(replies), info = std::move(info)]() mutable {
            finish(batch, std::move(replies), std::move(info));
        });
    });
    if (!is_running) finish(batch, fail(Errc::store_unavailable, "no thread is free for the store"), info_);
}

void Batcher::finish(const std::shared_ptr<Batch>& batch, Result<std::vector<Reply>> replies,
                     std::shared_ptr<const StoreInfo> info) {
    under_way_.erase(batch);
    for (const Request& request : batch->requests) busy_.erase(busy_.find(name_of(request)));
    info_ = std::move(info);
    observer_.applied(batch->requests, replies, duration_cast<microseconds>(steady_clock::now() - batch->started));
    if (under_way_.empty()) slow_.reset();
    // What waited forms the next batch, and not what an answer makes its caller send at once.
    send_next();
    deliver(*batch, replies, info_);
    if (applied_ && (replies || replies.error().code == Errc::outcome_unknown)) applied_();
    send_next();
}

void Batcher::deliver(Batch& batch, Result<std::vector<Reply>>& replies, const std::shared_ptr<const StoreInfo>& info) {
    std::size_t at = 0;
    for (Call& call : batch.calls) {
        const auto first = static_cast<std::ptrdiff_t>(at);
        at += call.requests.size();
        if (replies) {
            const auto begin = replies->begin() + first;
            std::vector<Reply> own(std::make_move_iterator(begin),
                                   std::make_move_iterator(begin + static_cast<std::ptrdiff_t>(call.requests.size())));
            call.done({std::move(own), info, batch.sent_at});
        } else if (replies.error().code == Errc::store_unavailable && batch.deadline.at < call.deadline.at &&
                   batch.deadline.passed(store_.clock())) {
            // Nothing was changed, and only another call of the batch was in such a hurry.
            const auto begin = batch.requests.begin() + first;
            std::move(begin, begin + static_cast<std::ptrdiff_t>(call.requests.size()), call.requests.begin());
            waiting_ += call.requests.size();
            calls_.push_front(std::move(call));
        } else {
            call.done({std::unexpected(replies.error()), info, batch.sent_at});
        }
    }
}

}  // namespace holdfast::client
