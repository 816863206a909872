#include "guards/worktree/in_order.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::guards::worktree {
namespace {

constexpr std::size_t most_items = 128;
/// Two threads that make names in one folder wait for each other, so the rest of a folder goes with what came before.
constexpr std::size_t most_items_of_one_folder = 1024;
/// Each keeps three descriptors open.
constexpr std::size_t most_folders = 8;
constexpr std::size_t batches_for_each_thread = 2;

struct Batch {
    std::vector<Item> items{};
    Result<void> outcome{};
    bool is_done = false;
};

class Pipeline {
public:
    explicit Pipeline(const InOrder& job) : job_(job), on_stop_(job.stop, [this] { inner_.request_stop(); }) {
        for (unsigned i = 0; i < std::max(job.threads, 1U); ++i) threads_.emplace_back([this] { work(); });
    }
    ~Pipeline() { finish(); }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    Result<void> run() {
        for (bool is_more = true; is_more || !in_flight_.empty();) {
            while (is_more && in_flight_.size() < threads_.size() * batches_for_each_thread) {
                auto batch = fill();
                if (!batch) return std::unexpected(batch.error());
                is_more = !(*batch)->items.empty();
                if (is_more) submit(*std::move(batch));
            }
            if (in_flight_.empty()) break;
            if (auto handed = hand_on(); !handed) return handed;
        }
        return {};
    }

private:
    /// The next items, of a few folders.
    Result<std::shared_ptr<Batch>> fill() {
        auto batch = std::make_shared<Batch>();
        std::set<const OpenFolder*> folders;
        for (;;) {
            if (!ahead_) {
                auto item = job_.next();
                if (!item) return std::unexpected(item.error());
                if (!*item) break;
                ahead_ = *std::move(item);
            }
            const std::size_t count = batch->items.size();
            const bool is_full = count >= most_items || folders.size() >= most_folders;
            const bool goes_on = count > 0 && batch->items.back().from == ahead_->from;
            if (is_full && (!goes_on || count >= most_items_of_one_folder)) break;
            folders.insert(ahead_->from.get());
            batch->items.push_back(*std::exchange(ahead_, std::nullopt));
        }
        return batch;
    }

    void submit(std::shared_ptr<Batch> batch) {
        in_flight_.push_back(batch);
        const std::scoped_lock lock(mutex_);
        waiting_.push_back(std::move(batch));
        changed_.notify_all();
    }

    /// Waits for the oldest batch and gives its items to the caller.
    Result<void> hand_on() {
        const auto batch = in_flight_.front();
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return batch->is_done; });
        }
        in_flight_.pop_front();
        if (!batch->outcome) return batch->outcome;
        for (const Item& item : batch->items) {
            if (item.is_gone) continue;
            if (auto done = job_.done(item); !done) return done;
        }
        return {};
    }

    void work() {
        FileCopier copier(*job_.facts, inner_.get_token());
        for (;;) {
            std::shared_ptr<Batch> batch;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
                if (waiting_.empty()) return;
                batch = std::move(waiting_.front());
                waiting_.pop_front();
            }
            Result<void> outcome;
            for (Item& item : batch->items) {
                outcome = job_.work(item, copier);
                if (!outcome) break;
            }
            const std::scoped_lock lock(mutex_);
            batch->outcome = std::move(outcome);
            batch->is_done = true;
            changed_.notify_all();
        }
    }

    void finish() {
        inner_.request_stop();
        {
            const std::scoped_lock lock(mutex_);
            is_over_ = true;
            waiting_.clear();
            changed_.notify_all();
        }
        threads_.clear();
    }

    const InOrder& job_;
    std::stop_source inner_{};
    std::stop_callback<std::function<void()>> on_stop_;
    // Of the caller's thread alone.
    std::deque<std::shared_ptr<Batch>> in_flight_{};
    std::optional<Item> ahead_{};  ///< The next item, if it was asked for already.

    std::mutex mutex_{};  ///< Guards what follows, and `outcome` and `is_done` of every batch.
    std::condition_variable changed_{};
    std::deque<std::shared_ptr<Batch>> waiting_{};
    bool is_over_ = false;

    std::vector<std::jthread> threads_{};
};

}  // namespace

Result<void> run_in_order(const InOrder& job) { return Pipeline(job).run(); }

unsigned copying_threads() { return std::clamp(std::thread::hardware_concurrency(), 2U, 8U); }

}  // namespace holdfast::guards::worktree
