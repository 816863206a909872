#include "guards/sql/fence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <thread>

namespace holdfast::guards::fence {
namespace {

using sql::ErrorClass;
using sql::StatementError;
using std::chrono::milliseconds;

/// Between looks whether an earlier holder's session has ended.
constexpr milliseconds between_looks{20};
constexpr auto newest = "the newest holder";

/// A wait for a row, or a transaction that another one ended: the seal is tried again.
bool somebody_was_in_the_way(ErrorClass kind) { return kind == ErrorClass::lock_busy || kind == ErrorClass::conflict; }

std::uint64_t number_of(const SqlCell& cell) {
    std::uint64_t number = 0;
    if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), number);
    return number;
}

Result<SealedRow> row_of(const std::vector<SqlCell>& cells) {
    const auto store_id = StoreId::parse(cells.at(1).value_or(""));
    const auto lock_id = LockId::parse(cells.at(3).value_or(""));
    if (!store_id || !lock_id)
        return fail(Errc::record_corrupt,
                    fmt::format("the row of \"{}\" in holdfast_fence cannot be read", cells.at(0).value_or("")));
    return SealedRow{cells.at(0).value_or(""), *store_id, FencingToken{number_of(cells.at(2))}, *lock_id};
}

bool is_sealed_by(const SealedRow& found, const FenceClaim& claim) {
    return found.store_id == claim.store_id && found.token == claim.token && found.lock_id == claim.lock_id;
}

/// Whether `claim` may seal what `found` says.
Result<void> judge(const SealedRow& found, const FenceClaim& claim) {
    const bool never_sealed = found.token.value == 0;
    if (found.store_id != claim.store_id)
        return fail(Errc::fencing_mismatch,
                    fmt::format("the database is fenced for locks of another store ({}), and \"{}\" is held in {}; if "
                                "the locks have moved for good, bind it: holdfast fence bind --lock NAME",
                                found.store_id.text(), claim.name.text(), claim.store_id.text()));
    if (never_sealed || found.token < claim.token || is_sealed_by(found, claim)) return {};
    return fail(
        Errc::token_regressed,
        fmt::format("the fence of \"{}\" has seen token {} of another lease, and this lease has token {}: a newer "
                    "holder was here, or the store of the locks was restored from a backup",
                    claim.name.text(), found.token.value, claim.token.value));
}

Error in_the_way(const FenceClaim& claim, const std::vector<EarlierSession>& earlier) {
    std::vector<std::string> words;
    for (const EarlierSession& session : earlier) words.push_back(session.words);
    const std::string who = words.empty() ? "a transaction of an earlier holder, which the server does not name"
                                          : fmt::to_string(fmt::join(words, "; "));
    return {Errc::lock_conflict,
            fmt::format("an earlier holder of \"{}\" is not done with the database, and its session did not end: {}",
                        claim.name.text(), who)};
}

std::vector<sql::Command> commands_of(const std::vector<std::string>& texts) {
    std::vector<sql::Command> commands;
    for (const std::string& text : texts) commands.push_back({.text = text, .values = {}});
    return commands;
}

}  // namespace

std::vector<SqlValue> values_of(const FenceClaim& claim) {
    return {claim.name.text(), claim.store_id.text(), static_cast<std::int64_t>(claim.token.value),
            claim.lock_id.text()};
}

Result<std::unique_ptr<Fence>> Fence::of(sql::Session& session, const Clock& clock, Deadline deadline) {
    if (session.server().galera)
        return fail(Errc::store_unsafe,
                    fmt::format("{} is a Galera cluster: a row that is locked on one node stops nobody on another, so "
                                "nothing there can be fenced",
                                session.place()));
    switch (session.dialect()) {
        case SqlDialect::sqlite: return sqlite_fence(session, clock);
        case SqlDialect::postgres: return postgres_fence(session, clock, deadline);
        case SqlDialect::mysql: break;
    }
    return mysql_fence(session, clock, deadline);
}

std::string Fence::script(SqlDialect dialect) {
    switch (dialect) {
        case SqlDialect::sqlite: return sqlite_script();
        case SqlDialect::postgres: return postgres_script();
        case SqlDialect::mysql: break;
    }
    return mysql_script();
}

Result<bool> seal_database(std::string_view url, const std::vector<FenceClaim>& claims, IfUnfenced if_unfenced,
                           milliseconds patience, const Clock& clock) {
    const Deadline soon = Deadline::in(clock, patience);
    const auto session = sql::open_session(url, sql::IfAbsent::refuse, clock, soon);
    if (!session) return std::unexpected(session.error());
    const auto fence = Fence::of(**session, clock, soon);
    if (!fence) return std::unexpected(fence.error());
    if (if_unfenced == IfUnfenced::leave) {
        const auto exists = (*fence)->exists(soon);
        if (!exists) return exists;
        if (!*exists) return false;
    }
    bool sealed_any = false;
    for (const FenceClaim& claim : claims) {
        if (if_unfenced == IfUnfenced::leave) {
            const auto row = (*fence)->row(claim.name, soon);
            const bool is_ours_to_seal = row ? row->has_value() : row.error().code != Errc::denied;
            if (!is_ours_to_seal) continue;
        }
        if (auto sealed = (*fence)->seal(claim, patience, Deadline::never()); !sealed)
            return std::unexpected(sealed.error());
        sealed_any = true;
    }
    return sealed_any;
}

Result<bool> Fence::exists(Deadline deadline) {
    const auto found = session_->run({.text = texts_.exists, .values = {}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for holdfast_fence"));
    return !found->rows.empty();
}

Result<void> Fence::create(Deadline deadline) {
    const auto there = exists(deadline);
    if (!there) return std::unexpected(there.error());
    if (*there) return {};
    const auto made = session_->run_all(commands_of(texts_.create), deadline);
    if (made) return {};
    rollback();
    // Somebody else may have been quicker, in a way that the database calls an error.
    if (const auto now = exists(deadline); now && *now) return {};
    return std::unexpected(sql::error_of(made.error(), "create the table holdfast_fence"));
}

Result<void> Fence::install_assert(Deadline deadline) {
    const auto made = session_->run_all(commands_of(assert_statements()), deadline);
    if (made) return {};
    rollback();
    return std::unexpected(sql::error_of(made.error(), "install holdfast_assert"));
}

std::expected<Result<void>, StatementError> Fence::seal_in_transaction(const FenceClaim& claim, Deadline deadline) {
    auto commands = commands_of(texts_.begin_sealing);
    commands.push_back({.text = texts_.add_row, .values = values_of(claim)});
    commands.push_back({.text = texts_.lock_row, .values = values_of(claim)});
    const auto answers = session_->run_all(commands, deadline);
    if (!answers) return std::unexpected(answers.error());
    const auto& rows = answers->back().rows;
    if (rows.empty())
        return Result<void>(fail(Errc::record_corrupt, "the row of the lock in holdfast_fence has gone meanwhile"));
    const auto found = row_of(rows.front());
    if (!found) return Result<void>(std::unexpected(found.error()));
    if (auto judged = judge(*found, claim); !judged) return judged;
    const std::vector<sql::Command> change{{.text = texts_.change_row, .values = values_of(claim)},
                                           {.text = "COMMIT", .values = {}}};
    if (const auto changed = session_->run_all(change, deadline); !changed) return std::unexpected(changed.error());
    return Result<void>();
}

Result<Fence::Attempt> Fence::try_seal(const FenceClaim& claim, Deadline deadline) {
    const auto sealed = seal_in_transaction(claim, deadline);
    if (!sealed || !*sealed) rollback();
    if (session_->is_usable()) (void)session_->run_all(commands_of(texts_.end_sealing), deadline);
    if (sealed && *sealed) return Attempt::sealed;
    if (sealed) return std::unexpected(sealed->error());
    if (somebody_was_in_the_way(sealed.error().kind)) return Attempt::row_is_locked;
    return std::unexpected(sql::error_of(sealed.error(), "seal the database"));
}

Result<void> Fence::seal(const FenceClaim& claim, milliseconds patience, Deadline deadline) {
    if (auto created = create(deadline); !created) return created;
    const Deadline patient = Deadline::in(*clock_, patience);
    // Another connection of this holder may keep the row locked until its commit, and need not be waited for.
    const auto before = row(claim.name, deadline);
    if (!before) return std::unexpected(before.error());
    bool sealed = *before && is_sealed_by(**before, claim);
    while (true) {
        if (!sealed) {
            const auto attempt = try_seal(claim, deadline);
            if (!attempt) return std::unexpected(attempt.error());
            sealed = *attempt == Attempt::sealed;
        }
        // Always after the seal: a writer that passes the check before the seal has made itself known before its check.
        const auto earlier = end_earlier(claim, deadline);
        if (!earlier) return std::unexpected(earlier.error());
        if (sealed && earlier->empty()) return {};
        if (patient.passed(*clock_) || deadline.passed(*clock_)) return std::unexpected(in_the_way(claim, *earlier));
        std::this_thread::sleep_for(between_looks);
    }
}

Result<void> Fence::expect_holders_of(const LockName& name, const StoreId& store_id, Deadline deadline) {
    if (auto created = create(deadline); !created) return created;
    const FenceClaim nobody{name, store_id, FencingToken{}, LockId{}};
    const auto added = session_->run({.text = texts_.add_row, .values = values_of(nobody)}, deadline);
    if (!added) return std::unexpected(sql::error_of(added.error(), "prepare the fence"));
    return {};
}

Result<void> Fence::bind(const LockName& name, const StoreId& store_id, Deadline deadline) {
    if (auto created = create(deadline); !created) return created;
    // Token 0 is older than every lease. The claim of the former holder no longer matches.
    const FenceClaim nobody{name, store_id, FencingToken{}, LockId{}};
    auto commands = commands_of(texts_.begin_sealing);
    for (const std::string& text : {texts_.add_row, texts_.lock_row, texts_.change_row})
        commands.push_back({.text = text, .values = values_of(nobody)});
    commands.push_back({.text = "COMMIT", .values = {}});
    if (const auto bound = session_->run_all(commands, deadline); !bound) {
        rollback();
        return std::unexpected(sql::error_of(bound.error(), "bind the fence"));
    }
    return {};
}

Result<void> Fence::begin(const FenceClaim& claim, milliseconds lease_left, Deadline deadline) {
    auto commands = beginning(claim, std::max(lease_left, milliseconds{1}));
    for (auto& command : mark(claim)) commands.push_back(std::move(command));
    commands.push_back({.text = texts_.check, .values = values_of(claim)});
    const auto answers = session_->run_all(commands, deadline);
    if (answers && !answers->back().rows.empty()) return {};
    rollback();
    if (answers) return std::unexpected(mismatch(claim, deadline));
    return std::unexpected(sql::error_of(answers.error(), "begin a fenced transaction"));
}

Result<void> Fence::check(const FenceClaim& claim, Deadline deadline) {
    auto commands = mark(claim);
    commands.push_back({.text = texts_.check, .values = values_of(claim)});
    const auto answers = session_->run_all(commands, deadline);
    if (!answers) return std::unexpected(sql::error_of(answers.error(), "check the fence"));
    if (answers->back().rows.empty()) return std::unexpected(mismatch(claim, deadline));
    return {};
}

Result<void> Fence::commit(Deadline deadline) {
    const auto done = session_->run({.text = "COMMIT", .values = {}}, deadline);
    if (!done && done.error().kind == ErrorClass::connection_lost)
        return fail(Errc::outcome_unknown,
                    fmt::format("nobody knows whether the transaction was committed: {}", done.error().message));
    if (!done) {
        rollback();
        return std::unexpected(sql::error_of(done.error(), "commit"));
    }
    ended();
    return {};
}

void Fence::rollback() {
    if (!session_->is_usable()) return;
    // Nobody is told of a failure: the server rolls back what a connection leaves behind.
    (void)session_->run({.text = "ROLLBACK", .values = {}}, Deadline::in(*clock_, std::chrono::seconds{10}));
    ended();
}

Error Fence::mismatch(const FenceClaim& claim, Deadline deadline) {
    const auto found = row(claim.name, deadline);
    std::string who = newest;
    if (found && *found)
        who = (*found)->store_id == claim.store_id
                  ? fmt::format("token {} of lease {}", (*found)->token.value, (*found)->lock_id.text())
                  : fmt::format("a holder of another store, {}", (*found)->store_id.text());
    else if (found)
        who = "nobody";
    return {Errc::fencing_mismatch,
            fmt::format("the database is sealed for {} now, and this lease of \"{}\" has token {}: nothing was written",
                        who, claim.name.text(), claim.token.value)};
}

Result<std::optional<SealedRow>> Fence::row(const LockName& name, Deadline deadline) {
    const auto found = session_->run({.text = texts_.read_row, .values = {name.text()}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "read holdfast_fence"));
    if (found->rows.empty()) return std::nullopt;
    auto sealed = row_of(found->rows.front());
    if (!sealed) return std::unexpected(sealed.error());
    return std::move(*sealed);
}

Result<std::vector<SealedRow>> Fence::rows(Deadline deadline) {
    const auto found = session_->run({.text = texts_.list, .values = {}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "read holdfast_fence"));
    std::vector<SealedRow> all;
    for (const auto& cells : found->rows) {
        auto sealed = row_of(cells);
        if (!sealed) return std::unexpected(sealed.error());
        all.push_back(std::move(*sealed));
    }
    return all;
}

}  // namespace holdfast::guards::fence
