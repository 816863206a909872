#pragma once

#include "json/parse.hpp"
#include "stores/common/pool.hpp"
#include "stores/http/connection.hpp"

#include <mutex>
#include <optional>
#include <string>

namespace holdfast::stores::http {

/// What an answer says.
struct Statement {
    Result<json::Node> document;  ///< Or the error that the daemon gave, which is that of the call.
    bool may_have_acted =
        false;  ///< It is not a daemon's: somebody in between gave it, perhaps after a request passed.
};
[[nodiscard]] Statement statement_of(const Address& address, const Answer& answer);

/// An answer that no daemon of this version gives. `why` is the reader's complaint.
[[nodiscard]] Error not_understood(const Address& address, const Error& why);

/// Why a change has no replies.
struct ChangeError {
    bool may_have_acted = false;
    Error error;
    bool was_idle = false;  ///< Nothing was changed, and another connection may do better.
};

/// A daemon, with a connection for each call that is under way. May be used from any thread.
class Server {
public:
    explicit Server(Address address)
        : address_(std::move(address)), pool_([this](const base::CallBudget& budget) { return connect(budget); }) {}

    /// The document at `path`. Changes nothing, so it is asked for again if an old connection has ended.
    [[nodiscard]] Result<json::Node> read(const std::string& path, const base::CallBudget& budget);

    enum class Use { any, fresh };
    /// Sends `body` once. It tells the daemon when the caller will have given up.
    [[nodiscard]] std::expected<json::Node, ChangeError> change(const std::string& path, const std::string& body,
                                                                const std::optional<StoreId>& store_id, Use connection,
                                                                const base::CallBudget& budget);

    [[nodiscard]] const Address& address() const { return address_; }

private:
    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const base::CallBudget& budget);
    [[nodiscard]] std::expected<Answer, ExchangeError> exchange(Connection& connection, const Question& question,
                                                                const base::CallBudget& budget);
    [[nodiscard]] std::optional<Instant> in_daemon_time(std::chrono::milliseconds from_now) const;

    const Address address_;

    struct Sample {
        Instant daemon_time{};
        Boottime taken_at{};  ///< Not before it.
    };
    mutable std::mutex mutex_;
    std::optional<Sample> sample_{};  ///< Guarded by mutex_. The newest.

    Pool<Connection> pool_;
};

}  // namespace holdfast::stores::http
