#include "dashboards.hpp"

#include "replies.hpp"

#include <string_view>

namespace cockpit {

namespace json = boost::json;
using holdfast::Errc;
using holdfast::fail;
using holdfast::Result;

Result<void> TextToSave::write_in(holdfast::FencedDatabase& database) {
    const auto updated = database.run(
        "UPDATE dashboards SET text = $1, version = version + 1, saved_by = $2, "
        "saved_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE project = $3 AND id = $4 AND version = $5",
        {text, by, project, dashboard, base_version});
    if (!updated) return std::unexpected(updated.error());
    const auto found =
        database.run("SELECT version, saved_at FROM dashboards WHERE project = $1 AND id = $2", {project, dashboard});
    if (!found) return std::unexpected(found.error());
    if (found->rows.empty()) return fail(Errc::lock_not_held, "there is no such dashboard");
    saved_at = found->rows.front().at(1).value_or("");
    if (updated->changed == 1) return {};
    newer = number_of(found->rows.front().at(0));
    return fail(Errc::data_invalid, "the dashboard was changed after the version that this text began with");
}

Result<json::array> Dashboards::by_project() {
    const auto rows = database_.run(
        "SELECT p.id, p.name, d.id, d.name, d.version FROM projects p JOIN dashboards d ON d.project = p.id "
        "ORDER BY p.name, d.place");
    if (!rows) return std::unexpected(rows.error());
    json::array all;
    for (const auto& row : *rows) {
        const std::string id = row.at(0).value_or("");
        if (all.empty() || std::string_view(all.back().at("id").as_string()) != id)
            all.push_back({{"id", id}, {"name", row.at(1).value_or("")}, {"dashboards", json::array()}});
        all.back()
            .at("dashboards")
            .as_array()
            .push_back(
                {{"id", row.at(2).value_or("")}, {"name", row.at(3).value_or("")}, {"version", number_of(row.at(4))}});
    }
    return all;
}

Result<json::object> Dashboards::read(const std::string& project, const std::string& dashboard) {
    const auto rows = database_.run(
        "SELECT project, id, name, text, version, saved_by, saved_at FROM dashboards WHERE project = ?1 AND id = ?2",
        {project, dashboard});
    if (!rows) return std::unexpected(rows.error());
    if (rows->empty()) return fail(Errc::lock_not_held, "there is no such dashboard");
    const auto& row = rows->front();
    return json::object{{"project", row.at(0).value_or("")}, {"id", row.at(1).value_or("")},
                        {"name", row.at(2).value_or("")},    {"text", row.at(3).value_or("")},
                        {"version", number_of(row.at(4))},   {"saved_by", row.at(5).value_or("")},
                        {"saved_at", row.at(6).value_or("")}};
}

}  // namespace cockpit
