#pragma once

#include "base/attempts.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "stores/etcd/address.hpp"
#include "stores/etcd/http.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::stores::etcd {

/// How long a call goes on trying: until its deadline, and no longer than ten seconds of real time without any answer.
class Patience {
public:
    Patience(const Clock& clock, Deadline deadline);

    [[nodiscard]] bool over() const { return left() <= std::chrono::milliseconds{0}; }
    [[nodiscard]] std::chrono::milliseconds left() const;
    /// The servers are there: the ten seconds begin again.
    void answered();
    /// Waits for a short random time, longer after more attempts, so that those who met do not meet again.
    void pause(int attempts) const;

private:
    const Clock& clock_;
    Deadline deadline_;
    Boottime silent_since_;
};

/// The endpoints of one cluster: whom to ask, whom to pass over, and as whom. May be used from any thread.
class Gateway {
public:
    explicit Gateway(Address address) : address_(std::move(address)), passed_over_until_(address_.endpoints.size()) {}

    struct Answer {
        std::string body{};
        std::optional<Instant> date{};
        bool maybe_repeated = false;  ///< An earlier copy of the request may have been carried out.
    };

    /// Asks one endpoint after the other until one answers.
    ///
    /// Only for requests that may arrive twice. `store_unavailable`: none did anything. `outcome_unknown`: one
    /// may have, and did not say.
    [[nodiscard]] Result<Answer> call(std::string_view path, const std::string& body, Patience& patience);

    /// Asks this one, once.
    [[nodiscard]] Result<Answer> call_one(std::size_t endpoint, std::string_view path, const std::string& body,
                                          std::chrono::milliseconds timeout);

    [[nodiscard]] const Address& address() const { return address_; }
    /// The endpoint that is asked first.
    [[nodiscard]] std::size_t preferred() const;
    void pass_over(std::size_t endpoint);
    [[nodiscard]] std::string token() const;

private:
    struct Attempt;

    [[nodiscard]] Attempt attempt(std::size_t endpoint, std::string_view path, const std::string& body,
                                  std::chrono::milliseconds timeout);
    [[nodiscard]] Attempt log_in(std::size_t endpoint, std::chrono::milliseconds timeout);
    [[nodiscard]] std::vector<std::size_t> order() const;
    [[nodiscard]] std::unique_ptr<Http> take_http();
    void give_back(std::unique_ptr<Http> http);
    void prefer(std::size_t endpoint);
    [[nodiscard]] Error trouble(Errc code, std::size_t endpoint, std::string_view what) const;

    const Address address_;
    base::Attempts attempts_{};

    mutable std::mutex mutex_;
    // All of these are guarded by mutex_.
    std::vector<std::unique_ptr<Http>> idle_{};
    std::vector<Boottime> passed_over_until_;
    std::size_t preferred_ = 0;
    std::string token_{};
};

}  // namespace holdfast::stores::etcd
