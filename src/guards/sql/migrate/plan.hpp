#pragma once

#include "guards/sql/migrate/folder.hpp"
#include "holdfast/error.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::guards::migrate {

/// What the ledger says of one file.
enum class Status {
    applied,
    running,   ///< Begun by a process that has not finished it: it goes on, or died.
    failed,    ///< The database refused a statement, and what was before it stays.
    baseline,  ///< This version and all before it were there before Holdfast came.
    removed,   ///< Applied; its file is gone, which `repair` accepted.
};

[[nodiscard]] std::string_view name_of(Status status);
[[nodiscard]] std::optional<Status> status_of(std::string_view name);

/// One row of the table holdfast_migrations.
struct LedgerRow {
    std::string version{};
    std::string name{};
    std::string checksum{};
    Status status = Status::applied;
    std::uint64_t token = 0;
    std::string applied_by{};
    std::string applied_at{};
    std::int64_t duration_ms = 0;
    std::int64_t statements_done = 0;
    /// What the next statement was about to change, and how that looked: `table users 3f…`. Empty when no statement
    /// that commits by itself is under way, or when that cannot be told.
    std::string before{};

    /// 0 for a repeatable file.
    [[nodiscard]] std::uint64_t number() const;
    [[nodiscard]] bool is_repeatable() const { return version.starts_with("R__"); }
    [[nodiscard]] bool is_unfinished() const { return status == Status::running || status == Status::failed; }
};
using Ledger = std::vector<LedgerRow>;

enum class OutOfOrder { refused, allowed };

struct PlanOptions {
    std::optional<std::uint64_t> to{};  ///< No file beyond this number. Repeatable files wait then.
    OutOfOrder out_of_order = OutOfOrder::refused;
};

/// One file that is to run.
struct Step {
    const MigrationFile* file = nullptr;  ///< In the folder, which must outlive this.
    std::int64_t statements_done = 0;     ///< These were done by a process that died.
    bool resumed = false;
};

struct Plan {
    std::vector<Step> steps{};
    std::vector<std::string> warnings{};

    /// What was shown and confirmed, to be compared with what a second look brings.
    [[nodiscard]] bool same_as(const Plan& other) const;
};

/// What has to run so that the database has all of `folder`. Refused if files were edited or removed after they ran, or
/// would run after files with higher numbers; and if a file stopped half way, unless it can be continued (`running`).
[[nodiscard]] Result<Plan> plan_up(const Folder& folder, const Ledger& ledger, const PlanOptions& options);

/// The way back: the newest applied files, as many as `steps`, or all beyond `to`. Each needs a `.down.sql`.
struct DownOptions {
    std::size_t steps = 1;
    std::optional<std::uint64_t> to{};
};
[[nodiscard]] Result<Plan> plan_down(const Folder& folder, const Ledger& ledger, const DownOptions& options);

/// What is not in order, one line for each thing that `repair` would change.
struct Repair {
    enum class Kind {
        accept_text,     ///< The file was edited after it ran: its new checksum is taken over.
        accept_removal,  ///< The file is gone.
        settle,          ///< It stopped half way: what the statement under way did is looked up.
    };
    Kind kind;
    std::string version;
    std::string what;  ///< In words.
};
[[nodiscard]] std::vector<Repair> find_repairs(const Folder& folder, const Ledger& ledger);

/// The highest version that was applied; 0 for none.
[[nodiscard]] std::uint64_t highest_applied(const Ledger& ledger);

}  // namespace holdfast::guards::migrate
