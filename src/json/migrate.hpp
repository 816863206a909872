#pragma once

#include "holdfast/error.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The documents of `holdfast migrate`.
namespace holdfast::json {

/// A file, or the row that it left.
struct Migration {
    std::string version{};
    std::string name{};
    std::string_view state{};  ///< Of `status` only.
    /// Absent for a file that was never applied.
    struct Applied {
        std::uint64_t token = 0;
        std::string at{};
        std::string by{};
        std::int64_t duration_ms = 0;
        std::int64_t statements = 0;
    };
    std::optional<Applied> applied{};
};

/// `{"applied":[…],"pending":[…],"warnings":[…]}`; `done_as` is the name of the first.
[[nodiscard]] Object migrated(std::string_view done_as, const std::vector<Migration>& done,
                              const std::vector<Migration>& pending, const std::vector<std::string>& warnings);

/// `{"migrations":[…],"pending":[…]}`
[[nodiscard]] Object migration_status(const std::vector<Migration>& all);

struct SchemaObject {
    std::string kind{};
    std::string name{};
};
/// `{"drift":true,"changed":[…],"missing":[…],"not_ours":[…]}`
[[nodiscard]] Object schema_drift(const std::vector<SchemaObject>& changed, const std::vector<SchemaObject>& missing,
                                  const std::vector<SchemaObject>& not_ours);

struct LintFinding {
    std::string file{};
    std::uint64_t line = 0;
    std::string_view rule{};
    std::string message{};
};
/// `{"findings":[…]}`
[[nodiscard]] Object lint_findings(const std::vector<LintFinding>& findings);

/// One of several databases or schemas that a command worked on.
struct MigrationTarget {
    std::string database{};  ///< Its URL without secrets.
    std::string schema{};    ///< Empty: none was chosen.
    std::string_view status{};
    std::optional<int> exit_status{};  ///< Absent if it was not begun.
    const Node* document = nullptr;    ///< What the command printed for it, if it did.
    std::optional<Error> error{};      ///< Where that says nothing.
};
/// `{"targets":[{"database","schema","status",…}],"done":N,"failed":N,"not_started":N}`
[[nodiscard]] Object migration_targets(const std::vector<MigrationTarget>& targets);

/// `{"repaired":[…]}`, in words.
[[nodiscard]] Object repaired(const std::vector<std::string>& what);
/// `{"baseline":"7"}`
[[nodiscard]] Object baseline(std::string_view version);
/// `{"file":"migrations/0007_a.sql"}`
[[nodiscard]] Object new_file(std::string_view path);

}  // namespace holdfast::json
