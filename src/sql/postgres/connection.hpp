#pragma once

#include "base/call_budget.hpp"
#include "sql/postgres/address.hpp"
#include "sql/postgres/fault.hpp"
#include "sql/postgres/values.hpp"

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace holdfast::sql::postgres {

/// One round trip: several statements sent together, answered together.
struct Trip {
    std::vector<Rows> answers{};  ///< Of the statements before the fault.
    std::optional<Fault> fault{};
    /// The server says that it committed, but not whether a standby has it.
    bool half_committed = false;
};

/// One session with the server, in pipeline mode. For one thread at a time.
class Connection {
public:
    /// Connects and logs in. A login that is refused is `denied`, an unknown database `config`, everything else
    /// `store_unavailable`; nothing was changed.
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Address& address,
                                                                  const base::CallBudget& budget);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() = default;

    /// Sends all `statements` at once and waits for the answers. The server stops at the first that it refuses.
    [[nodiscard]] Trip run(std::span<const Statement> statements, const base::CallBudget& budget);
    [[nodiscard]] Trip run(const Statement& statement, const base::CallBudget& budget) {
        return run({&statement, 1}, budget);
    }

    /// Sends a statement whose answer does not matter. It is read before the next trip begins.
    void send_only(const Statement& statement);

    /// COPY … FROM STDIN. From a beginning that succeeded to the end nothing else is sent.
    [[nodiscard]] std::optional<Fault> begin_copy(const std::string& sql, const base::CallBudget& budget);
    [[nodiscard]] std::optional<Fault> put_copy(std::string_view data, const base::CallBudget& budget);
    /// `why_not` is null, or the reason for which the server is to take all of it back.
    [[nodiscard]] std::optional<Fault> end_copy(const char* why_not, const base::CallBudget& budget);

    /// Neither broken nor left in the middle of an answer.
    [[nodiscard]] bool is_usable() const { return usable_; }
    /// Looks, without waiting, whether the server is still there since the last trip.
    [[nodiscard]] bool is_alive();

    /// A pooler is at the other end, which shares a few sessions among many clients.
    [[nodiscard]] bool is_pooled() const { return pooled_; }
    /// The server was in recovery when the connection was made: it takes no changes, and what it shows may be old.
    [[nodiscard]] bool is_standby() const { return standby_; }
    [[nodiscard]] const std::string& server_encoding() const { return encoding_; }

    /// For `Canceller`: what is needed to cancel a statement of this session from another thread.
    [[nodiscard]] pg_conn* handle() const { return connection_.get(); }

    /// For a listener: the socket to sleep on, and the channels of the notifications that have arrived.
    [[nodiscard]] int socket() const;
    [[nodiscard]] std::vector<std::string> notifications();

private:
    explicit Connection(pg_conn* connection) : connection_(connection) {}

    struct Finish {
        void operator()(pg_conn* connection) const;
    };

    [[nodiscard]] Result<void> connect(const Address& address, const base::CallBudget& budget);
    /// Reads what `is_standby`, `is_pooled` and `server_encoding` tell.
    [[nodiscard]] Result<void> read_facts(const Address& address, const base::CallBudget& budget);
    /// One answer that a trip waits for.
    struct Awaited {
        std::size_t at = 0;                 ///< The statement.
        const std::string* kept = nullptr;  ///< It says only that the session keeps the statement by this name.
    };
    /// Queues the statement `at`, and before it its text, if the session is to keep that.
    [[nodiscard]] bool queue(const Statement& statement, std::size_t at, std::vector<Awaited>& awaited);
    /// Takes in one answer. False if the connection cannot be used any more.
    [[nodiscard]] bool take_answer(const Awaited& awaited, Trip& trip, const base::CallBudget& budget);
    [[nodiscard]] bool flush(const base::CallBudget& budget);
    [[nodiscard]] bool await_answer(const base::CallBudget& budget);
    [[nodiscard]] bool drain(const base::CallBudget& budget);
    /// Reads and drops one answer that has arrived and that nobody waits for.
    void skip_answer();
    [[nodiscard]] Fault broken(std::size_t at, const base::CallBudget& budget);
    [[nodiscard]] Fault fault_of(const pg_result* result, std::size_t at, const base::CallBudget& budget);
    /// Takes all answers of a statement that was sent outside of the pipeline, and goes back into it.
    [[nodiscard]] std::optional<Fault> finish_copy(const base::CallBudget& budget);
    [[nodiscard]] std::string scrubbed(const char* text) const;
    static void heard(void* self, const pg_result* notice);

    std::unique_ptr<pg_conn, Finish> connection_;
    std::size_t unread_ = 0;  ///< Trips whose answers nobody waited for.
    bool usable_ = true;
    bool pooled_ = false;
    bool standby_ = false;
    std::string encoding_{};
    std::set<std::string> prepared_{};  ///< Names of the statements that the session keeps.
    bool half_committed_ = false;
};

/// For a session that is ours alone: lets the server notice soon that we are gone.
[[nodiscard]] Statement notice_dead_peers();

}  // namespace holdfast::sql::postgres
