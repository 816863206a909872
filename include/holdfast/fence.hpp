#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/sql.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The fence of a SQL database: it refuses writes of every holder but the newest.
///
/// The database remembers in its table `holdfast_fence` the last seal: (store_id, token, lock_id). A new holder seals
/// before its first read; each write transaction begins with a locking read of its own row, which stays locked until
/// the commit. So whatever is paused, delayed or cut off, accepted writes are ordered by token and never interleave
/// between holders. `docs/reference/fence.md` has the whole of it.
namespace [[gnu::visibility("default")]] holdfast {

/// The claim of a writer, which a fence compares. Public, proves nothing.
struct FenceClaim {
    LockName name;  ///< Of the lock, and of the row that it seals.
    StoreId store_id{};
    FencingToken token{};
    LockId lock_id{};

    [[nodiscard]] bool operator==(const FenceClaim&) const = default;
};

/// The claim of a lease that this process holds. `config` if its store has no id.
[[nodiscard]] Result<FenceClaim> claim_of(const Hold& hold);

struct FenceOptions {
    /// Asked to stop when the lease is lost: the statement that runs is cancelled at the server, and no other begins.
    std::stop_token lost{};
    /// How long the lease can still be trusted. Bounds how long a paused process keeps a transaction open. Absent: 30
    /// s.
    std::function<std::chrono::milliseconds()> lease_left{};
    /// How long sealing waits for what an earlier holder still has open, after trying to end it.
    std::chrono::milliseconds patience{30'000};
    /// Where a refused write is recorded as the event `fenced`. Null: nowhere. Must outlive the database.
    Store* store = nullptr;
    const Clock* clock = nullptr;  ///< Null: that of `store`, or of the host without one. Must outlive the database.
};

/// One connection to a database, behind its fence. For one thread at a time.
class FencedDatabase {
public:
    FencedDatabase(FencedDatabase&&) noexcept;
    FencedDatabase& operator=(FencedDatabase&&) noexcept;
    /// Rolls an open transaction back.
    ~FencedDatabase();

    /// Connects to `url` and seals the database for `claim`: before this has returned, nothing of it can be read here.
    ///
    /// The table is created on first use. What earlier holders still have open is ended where the server lets us, or
    /// waited for. Refused with `fencing_mismatch` when a newer holder was here, or the database is sealed for another
    /// store (`holdfast fence bind` decides that); with `token_regressed` when the database has seen a newer token than
    /// the store gave out; with `lock_conflict` and the name of the session that is in the way when it did not end;
    /// with `store_unsafe` on a server that cannot fence (Galera).
    [[nodiscard]] static Result<FencedDatabase> seal(std::string_view url, const FenceClaim& claim,
                                                     FenceOptions options = {});

    /// Begins a transaction whose first statement is the check. `fencing_mismatch`: a newer holder was here, nothing is
    /// begun, and the audit log has the event.
    [[nodiscard]] Result<void> begin(Deadline deadline = Deadline::never());
    /// Runs one statement: in the transaction, if one is open; else only to read.
    [[nodiscard]] Result<SqlAnswer> run(std::string_view sql, std::vector<SqlValue> values = {},
                                        Deadline deadline = Deadline::never());
    /// `outcome_unknown` if the answer was lost. After every other error nothing of the transaction is there.
    [[nodiscard]] Result<void> commit(Deadline deadline = Deadline::never());
    void rollback();

    /// Runs a statement that commits by itself, fenced by connection: the next holder ends this connection, and is told
    /// that it holds when the statement has ended. Refused with `store_unsafe` behind a pooler or proxy, and on TiDB.
    [[nodiscard]] Result<SqlAnswer> run_by_connection(std::string_view sql, Deadline deadline = Deadline::never());

    [[nodiscard]] const FenceClaim& claim() const;

    class [[gnu::visibility("hidden")]] Impl;

private:
    explicit FencedDatabase(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A lock that is held, and a database that is sealed for it. Threads: as for `Hold` and `FencedDatabase`.
class FencedHold {
public:
    [[nodiscard]] Hold& hold() { return *hold_; }
    [[nodiscard]] FencedDatabase& database() { return database_; }

private:
    friend Result<FencedHold> hold_fenced(Store&, const LockName&, std::string_view, const HoldOptions&);
    FencedHold(std::unique_ptr<Hold> hold, FencedDatabase database)
        : hold_(std::move(hold)), database_(std::move(database)) {}

    /// Before the database, which asks it: so that it goes after it, and its place in memory stays.
    std::unique_ptr<Hold> hold_;
    FencedDatabase database_;
};

/// Takes `name` on `store`, and seals `url` before it returns. If the seal is refused, the lock is given back. `store`
/// must outlive the result.
[[nodiscard]] Result<FencedHold> hold_fenced(Store& store, const LockName& name, std::string_view url,
                                             const HoldOptions& options = {});

}  // namespace holdfast
