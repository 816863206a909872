#pragma once

#include "base/attempts.hpp"
#include "base/call_budget.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "stores/etcd/config.hpp"
#include "stores/etcd/wire/channel.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::stores::etcd {

/// Sleeps for a short random time, longer after more attempts, so that clients that met once do not meet again.
void pause_after(int attempts, const base::CallBudget& budget);

/// The endpoints of one cluster: which to ask first, which to skip, and the login. May be used from any thread.
class Cluster {
public:
    explicit Cluster(Address address) : address_(std::move(address)), nodes_(address_.endpoints.size()) {}

    struct Answer {
        std::string message{};
        bool maybe_repeated = false;  ///< An earlier copy of the request may have been carried out.
    };

    /// Asks one endpoint after the other until one answers.
    ///
    /// Only for requests that may arrive twice. `store_unavailable`: no endpoint carried the request out.
    /// `outcome_unknown`: one may have.
    [[nodiscard]] Result<Answer> call(std::string_view method, std::string_view message, base::CallBudget& budget);
    /// Asks this one, once.
    [[nodiscard]] Result<Answer> call_one(std::size_t endpoint, std::string_view method, std::string_view message,
                                          std::chrono::milliseconds timeout);

    /// What the clock of one of them shows, in whole seconds.
    [[nodiscard]] Result<Instant> date(base::CallBudget& budget);
    [[nodiscard]] Result<Instant> date_of(std::size_t endpoint, std::chrono::milliseconds timeout);

    struct Taken {
        std::unique_ptr<Channel> channel{};  ///< Null if none could be made.
        bool was_kept = false;               ///< It was not made for this call.
        std::string error{};
    };
    /// A connection for the caller alone, to be given back after a call that was not interrupted.
    [[nodiscard]] Taken take_channel(std::size_t endpoint, std::chrono::milliseconds timeout);
    void give_back(std::size_t endpoint, std::unique_ptr<Channel> channel);

    [[nodiscard]] const Address& address() const { return address_; }
    /// The endpoint that is asked first.
    [[nodiscard]] std::size_t preferred() const;
    void pass_over(std::size_t endpoint);
    [[nodiscard]] std::string token() const;

private:
    struct Attempt;
    struct Node {
        std::vector<std::unique_ptr<Channel>> idle{};
        Boottime passed_over_until{};
    };

    /// Calls `ask` for one endpoint after the other until it has an answer.
    template <class Ask>
    [[nodiscard]] Attempt first_answer(base::CallBudget& budget, Ask ask);
    [[nodiscard]] CallEnd deliver(std::size_t endpoint, const Call& call, std::chrono::milliseconds timeout,
                                  std::string& message);
    [[nodiscard]] Attempt attempt(std::size_t endpoint, std::string_view method, std::string_view message,
                                  std::chrono::milliseconds timeout);
    [[nodiscard]] Attempt attempt_date(std::size_t endpoint, std::chrono::milliseconds timeout);
    [[nodiscard]] Attempt log_in(std::size_t endpoint, std::chrono::milliseconds timeout);
    [[nodiscard]] std::vector<std::size_t> order() const;
    [[nodiscard]] std::unique_ptr<Channel> take_idle(std::size_t endpoint);
    void forget_idle(std::size_t endpoint);
    void prefer(std::size_t endpoint);
    [[nodiscard]] Error error_at(Errc code, std::size_t endpoint, std::string_view what) const;

    const Address address_;
    base::Attempts attempts_{};

    mutable std::mutex mutex_;
    // All of these are guarded by mutex_.
    std::vector<Node> nodes_;
    std::vector<std::unique_ptr<Http>> idle_clocks_{};
    std::size_t preferred_ = 0;
    std::string token_{};
};

}  // namespace holdfast::stores::etcd
