#include "drafts.hpp"

#include "replies.hpp"

namespace cockpit {

namespace json = boost::json;
using holdfast::Result;

namespace {

/// Of one user for one dashboard. More are a client that tries again and again, not work.
constexpr std::int64_t most_drafts = 20;
constexpr auto delete_typed =
    "DELETE FROM kept_drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 AND tab = ?4 AND why <> 'refused'";

}  // namespace

Result<json::object> Drafts::keep_typed(const Draft& draft) {
    const auto dropped = database_.run(delete_typed, {draft.project, draft.dashboard, draft.user, draft.tab});
    if (!dropped) return std::unexpected(dropped.error());
    return keep(draft, draft.is_private ? "private" : "typed");
}

Result<json::object> Drafts::keep_refused(const Draft& draft) { return keep(draft, "refused"); }

void Drafts::forget_typed(const Draft& of) {
    (void)database_.run(delete_typed, {of.project, of.dashboard, of.user, of.tab});
}

Result<json::object> Drafts::keep(const Draft& draft, const std::string& why) {
    const auto kept = database_.run(
        "INSERT INTO kept_drafts (project, dashboard, user, tab, text, base_version, kept_at, why) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?7) RETURNING id, kept_at",
        {draft.project, draft.dashboard, draft.user, draft.tab, draft.text, draft.base_version, why});
    if (!kept) return std::unexpected(kept.error());
    (void)database_.run(
        "DELETE FROM kept_drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 AND id NOT IN (SELECT id FROM "
        "kept_drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 ORDER BY id DESC LIMIT ?4)",
        {draft.project, draft.dashboard, draft.user, most_drafts});
    return json::object{{"id", number_of(kept->front().at(0))},
                        {"user", draft.user},
                        {"is_mine", true},
                        {"text", draft.text},
                        {"base_version", draft.base_version},
                        {"kept_at", kept->front().at(1).value_or("")},
                        {"why", why}};
}

Result<json::array> Drafts::of(const std::string& project, const std::string& dashboard, const std::string& reader) {
    const auto rows = database_.run(
        "SELECT id, user, text, base_version, kept_at, why FROM kept_drafts WHERE project = ?1 AND dashboard = ?2 "
        "AND (user = ?3 OR why <> 'private') ORDER BY id DESC",
        {project, dashboard, reader});
    if (!rows) return std::unexpected(rows.error());
    json::array all;
    for (const auto& row : *rows)
        all.push_back({{"id", number_of(row.at(0))},
                       {"user", row.at(1).value_or("")},
                       {"is_mine", row.at(1) == reader},
                       {"text", row.at(2).value_or("")},
                       {"base_version", number_of(row.at(3))},
                       {"kept_at", row.at(4).value_or("")},
                       {"why", row.at(5).value_or("")}});
    return all;
}

Result<bool> Drafts::drop(std::int64_t id, const Draft& where, bool of_anybody) {
    const auto dropped = database_.run(
        "DELETE FROM kept_drafts WHERE id = ?1 AND project = ?2 AND dashboard = ?3 "
        "AND (user = ?4 OR (?5 = 1 AND why <> 'private')) RETURNING id",
        {id, where.project, where.dashboard, where.user, std::int64_t{of_anybody ? 1 : 0}});
    if (!dropped) return std::unexpected(dropped.error());
    return !dropped->empty();
}

}  // namespace cockpit
