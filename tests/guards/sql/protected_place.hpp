#pragma once

#include "holdfast/fence.hpp"
#include "sql/session.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/temp_folder.hpp"

#include <memory>
#include <optional>
#include <string>

namespace holdfast::tests {

/// A database that nobody else uses, and a SQL shell beside the fence.
class ProtectedPlace {
public:
    explicit ProtectedPlace(SqlDialect dialect);

    [[nodiscard]] SqlDialect dialect() const { return dialect_; }
    [[nodiscard]] const std::string& url() const { return url_; }

    /// A connection without a fence, as somebody with a SQL shell has it.
    [[nodiscard]] std::unique_ptr<sql::Session> connect() const;
    /// Runs a statement by hand. The first column of the first row, if there is one. Throws what goes wrong.
    std::string operator()(const std::string& sql);

private:
    SqlDialect dialect_;
    TempFolder folder_{};
    std::optional<MysqlDatabase> mysql_{};
    std::string url_{};
    std::unique_ptr<sql::Session> shell_{};
};

/// A claim on the lock `app` of a store that is always the same one.
[[nodiscard]] FenceClaim claim_with(std::uint64_t token, LockId lock_id = LockId::random());

[[nodiscard]] std::string name_of(SqlDialect dialect);

}  // namespace holdfast::tests
