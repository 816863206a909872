#pragma once

#include "base/call_budget.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"
#include "stores/http/config.hpp"

#include <array>
#include <chrono>
#include <curl/curl.h>
#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::stores::http {

/// What is asked of the daemon: with a body it is a POST.
struct Question {
    std::string path;  ///< `/v1/lock?name=x`
    std::optional<std::string> body{};
    std::optional<Instant> late_after{};  ///< By the daemon's clock: read later, it is not to be carried out.
    std::optional<StoreId> store_id{};    ///< Of the store that it is meant for.
};

struct Answer {
    long status = 0;
    std::string body{};
    std::optional<Instant> daemon_time{};  ///< When it was written, by the daemon's clock.
    std::string redirect{};                ///< Where it says that the daemon is, without what could be a secret.
};

/// Why there is no answer.
struct ExchangeError {
    bool sent = false;  ///< The daemon may have acted.
    std::string why{};
    bool is_config = false;  ///< Trying again helps only after a change here: a certificate, for example.
};

/// A request in libcurl, and what came of it. The question, the answer and this object must not move while it runs.
class HttpTransfer {
public:
    explicit HttpTransfer(const Address& address);
    HttpTransfer(const HttpTransfer&) = delete;
    HttpTransfer& operator=(const HttpTransfer&) = delete;
    ~HttpTransfer();

    /// Makes the handle ready for `question`. `budget` may be null; then only `most` limits the time.
    void prepare(const Question& question, std::chrono::milliseconds most, const base::CallBudget* budget);
    /// After the transfer has ended with `code`.
    [[nodiscard]] std::expected<Answer, ExchangeError> finish(CURLcode code);

    [[nodiscard]] CURL* handle() const { return handle_.get(); }

private:
    static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self);
    static int before_request(void* self, char* ip, char* local_ip, int port, int local_port);
    static int check_budget(void* self, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now);

    const Address& address_;
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle_;
    curl_slist* headers_ = nullptr;
    std::string body_{};
    Answer answer_{};
    const base::CallBudget* budget_ = nullptr;
    int times_sent_ = 0;
    std::array<char, CURL_ERROR_SIZE> details_{};
};

/// One connection to a daemon, which is made for the first question. For one thread at a time.
class Connection {
public:
    explicit Connection(const Address& address)
        : transfer_(address), is_encrypted_(address.base.starts_with("https:")) {}

    /// Sends the question once. After a failure the connection cannot be used again.
    [[nodiscard]] std::expected<Answer, ExchangeError> exchange(const Question& question,
                                                                const base::CallBudget& budget);

    /// No exchange was interrupted.
    [[nodiscard]] bool is_usable() const { return is_usable_; }
    /// The daemon has not closed it, as far as can be known without waiting.
    [[nodiscard]] bool is_alive() const;

private:
    HttpTransfer transfer_;
    bool is_encrypted_;
    bool is_usable_ = true;
};

/// The error of a call that did not reach the daemon.
[[nodiscard]] Error not_reached(const Address& address, const ExchangeError& error);

}  // namespace holdfast::stores::http
