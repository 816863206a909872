#pragma once

#include "stores/mysql/codec.hpp"
#include "stores/mysql/server_facts.hpp"

#include <span>
#include <vector>

/// Queries that change nothing, and their answers. One statement sees one moment.
namespace holdfast::stores::mysql {

/// Two statements.
[[nodiscard]] Sql inspect_query(const LockName& name, const Clock& clock);
[[nodiscard]] Result<LockStatus> inspected(std::span<Answer> answers, const LockName& name, const Judging& judging);

[[nodiscard]] Sql list_query(const ListQuery& query, const Clock& clock);
[[nodiscard]] Result<std::vector<LockStatus>> listed(Answer& answer, const ListQuery& query, const Judging& judging);

[[nodiscard]] Sql history_query(const HistoryQuery& query);
[[nodiscard]] Result<std::vector<AuditEvent>> events_in(Answer& answer, const HistoryQuery& query);

}  // namespace holdfast::stores::mysql
