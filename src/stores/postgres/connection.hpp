#pragma once

#include "stores/common/pool.hpp"
#include "stores/postgres/config.hpp"
#include "stores/postgres/values.hpp"

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace holdfast::stores::postgres {

/// Why a trip to the server did not bring all its answers.
struct Fault {
    std::size_t at = 0;        ///< Which statement was refused, or not answered.
    std::string sqlstate{};    ///< Empty if the server said nothing: the connection broke, or time was over.
    std::string message{};     ///< Without secrets.
    bool fatal = false;        ///< The server ended the session.
    std::string constraint{};  ///< That was violated, if it has a name.

    [[nodiscard]] bool silent() const { return sqlstate.empty(); }
    /// The session does not keep what it was given, or keeps what it was not: it is another one than before. Nothing
    /// was changed, and the connection goes on without being remembered.
    [[nodiscard]] bool is_strangers() const { return sqlstate == "26000" || sqlstate == "42P05"; }
};

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
    /// Refuses a server that is in recovery: what it shows is old.
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Settings& settings, const CallBudget& budget);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() = default;

    /// Sends all `statements` at once and waits for the answers. The server stops at the first that it refuses.
    [[nodiscard]] Trip run(std::span<const Statement> statements, const CallBudget& budget);
    [[nodiscard]] Trip run(const Statement& statement, const CallBudget& budget) {
        return run({&statement, 1}, budget);
    }

    /// Sends a statement whose answer does not matter. It is read before the next trip begins.
    void send_only(const Statement& statement);

    /// Neither broken nor left in the middle of an answer.
    [[nodiscard]] bool is_usable() const { return usable_; }
    /// Looks, without waiting, whether the server is still there since the last trip.
    [[nodiscard]] bool is_alive();

    /// Not the session itself is at the other end, but somebody who shares a few among many.
    [[nodiscard]] bool is_pooled() const { return pooled_; }

    /// For whoever listens: the socket to sleep on, and the channels of what has arrived.
    [[nodiscard]] int socket() const { return PQsocket(connection_.get()); }
    [[nodiscard]] std::vector<std::string> notifications();

private:
    explicit Connection(PGconn* connection) : connection_(connection, PQfinish) {}
    [[nodiscard]] Result<void> connect(const Settings& settings, const CallBudget& budget);
    [[nodiscard]] Result<void> greet(const Settings& settings, const CallBudget& budget);
    /// For a session of our own, which keeps statements.
    [[nodiscard]] Result<void> plan_once(const CallBudget& budget);
    /// One answer that a trip waits for.
    struct Awaited {
        std::size_t at = 0;                 ///< The statement.
        const std::string* kept = nullptr;  ///< It says only that the session keeps the statement by this name.
    };
    /// Queues the statement `at`, and before it its text, if the session is to keep that.
    [[nodiscard]] bool queue(const Statement& statement, std::size_t at, std::vector<Awaited>& awaited);
    /// Takes in one answer. False if the connection is of no more use.
    [[nodiscard]] bool take_answer(const Awaited& awaited, Trip& trip, const CallBudget& budget);
    [[nodiscard]] bool flush(const CallBudget& budget);
    [[nodiscard]] bool await_answer(const CallBudget& budget);
    [[nodiscard]] bool drain(const CallBudget& budget);
    [[nodiscard]] Fault broken(std::size_t at, const CallBudget& budget);
    [[nodiscard]] std::string scrubbed(const char* text) const;
    static void heard(void* self, const PGresult* notice);

    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
    std::size_t unread_ = 0;  ///< Trips whose answers nobody waited for.
    bool usable_ = true;
    bool pooled_ = false;
    std::set<std::string> prepared_{};  ///< Names of the statements that the session keeps.
    bool half_committed_ = false;
};

/// For a session that is ours alone: lets the server notice soon that we are gone.
[[nodiscard]] Statement notice_dead_peers();

/// What a fault means for the caller, if nothing was changed. `doing` completes "cannot …".
[[nodiscard]] Error error_of(const Fault& fault, std::string_view doing);

}  // namespace holdfast::stores::postgres
