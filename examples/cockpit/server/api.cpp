#include "api.hpp"

#include "json.hpp"
#include "pages.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace cockpit {
namespace {

namespace json = boost::json;
using holdfast::Errc;
using holdfast::Error;
using holdfast::fail;
using holdfast::Result;
using std::chrono::milliseconds;

constexpr std::chrono::seconds to_answer{15};
constexpr std::size_t longest_text = std::size_t{256} << 10;
/// Of one user for one dashboard. More are a client that tries again and again, not work.
constexpr std::int64_t most_drafts = 20;
constexpr auto cookie_name = "cockpit_session=";
constexpr auto dashboard_columns = "project, id, name, text, version, saved_by, saved_at";

holdfast::Deadline soon() { return holdfast::Deadline::in(holdfast::host_clock(), to_answer); }

Response reply(const json::object& document, int status = 200) {
    return {.status = status, .body = json::serialize(document)};
}

Response reply(const Error& error) {
    const int status = holdfast::row_of(error.code).http_status;
    return reply(document_of(error), status == 0 ? 500 : status);
}

Response denied(const std::string& message, int status = 403) {
    return reply(document_of(Error{Errc::denied, message}), status);
}

Response not_found() { return reply(document_of(Error{Errc::lock_not_held, "there is no such thing here"}), 404); }

std::int64_t number_of(const holdfast::SqlCell& cell) {
    std::int64_t number = 0;
    if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), number);
    return number;
}

bool is_id(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        path.remove_prefix(1);
        const auto end = std::min(path.find('/'), path.size());
        parts.emplace_back(path.substr(0, end));
        path.remove_prefix(end);
    }
    return parts;
}

json::object object_in(const std::string& body) {
    boost::system::error_code error;
    const json::value document = json::parse(body, error);
    return !error && document.is_object() ? document.as_object() : json::object{};
}

std::string text_in(const json::object& document, std::string_view key) {
    const json::value* const value = document.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

std::int64_t number_in(const json::object& document, std::string_view key, std::int64_t otherwise) {
    const json::value* const value = document.if_contains(key);
    return value != nullptr && value->is_int64() ? value->as_int64() : otherwise;
}

json::object document_of(const std::vector<holdfast::SqlCell>& row) {
    return {{"project", row.at(0).value_or("")}, {"id", row.at(1).value_or("")},
            {"name", row.at(2).value_or("")},    {"text", row.at(3).value_or("")},
            {"version", number_of(row.at(4))},   {"saved_by", row.at(5).value_or("")},
            {"saved_at", row.at(6).value_or("")}};
}

/// A page of another origin may send requests here, too: its browser says so.
bool is_foreign(const Request& request, std::uint16_t port) {
    const std::string own = ":" + std::to_string(port);
    const std::string host = request.header("host");
    if (host != "127.0.0.1" + own && host != "localhost" + own) return true;
    const std::string site = request.header("sec-fetch-site");
    if (!site.empty() && site != "same-origin" && site != "none") return true;
    const std::string origin = request.header("origin");
    return !origin.empty() && origin != "http://" + host;
}

std::string session_in(const Request& request) {
    const std::string cookies = request.header("cookie");
    const auto found = cookies.find(cookie_name);
    if (found == std::string::npos) return "";
    const auto begin = found + std::string_view(cookie_name).size();
    return cookies.substr(begin, std::min(cookies.find(';', begin), cookies.size()) - begin);
}

const char* name_of(Progress::State state) {
    switch (state) {
        case Progress::State::running: return "running";
        case Progress::State::done: return "done";
        case Progress::State::failed: break;
    }
    return "failed";
}

json::object document_of(const holdfast::ProjectLease& lease, const std::string& project) {
    json::object document{{"project", project},
                          {"dashboard", lease.dashboard},
                          {"user", lease.user},
                          {"type", name_of(lease.type)},
                          {"acquired_at", holdfast::to_rfc3339(lease.acquired_at)},
                          {"expires_at", holdfast::to_rfc3339(lease.expires_at)},
                          {"token", lease.token.value},
                          {"lock_id", lease.lock_id.text()}};
    document["released_at"] = lease.released_at ? json::value(holdfast::to_rfc3339(*lease.released_at)) : json::value();
    document["ended_by"] = lease.released_at ? json::value(lease.ended_by) : json::value();
    return document;
}

}  // namespace

struct Api::Call {
    const Request& request;
    const std::string& name;
    User& user;
    holdfast::ProjectLocks locks;
    std::string project{};
    std::string dashboard{};
    std::string draft{};
    json::object body{};
};

Api::Api(const Settings& settings)
    : settings_(settings),
      users_(users_in(settings.tokens, settings.daemon, settings.times)),
      proxy_(settings.daemon),
      database_(settings.database),
      propagations_("sqlite:" + settings.database) {}

Result<Rows> Api::run(const std::string& sql, const std::vector<holdfast::SqlValue>& values) {
    const std::scoped_lock lock(mutex_);
    return database_.run(sql, values);
}

std::string Api::user_of(const Request& request) {
    const std::string session = session_in(request);
    if (session.empty()) return "";
    const auto found = run("SELECT user FROM sessions WHERE id = ?1", {session});
    const std::string name = found && !found->empty() ? found->front().at(0).value_or("") : "";
    return users_.contains(name) ? name : "";
}

std::optional<Response> Api::relay(const Request& request, int socket) {
    if (is_foreign(request, settings_.port)) return denied("a page of another origin may not ask this");
    const std::string name = user_of(request);
    if (name.empty()) return denied("sign in first", 401);
    return proxy_.relay(request, users_.at(name).token, socket);
}

Response Api::answer(const Request& request) {
    if (is_foreign(request, settings_.port)) return denied("a page of another origin may not ask this");
    if (!request.path.starts_with("/api/")) {
        if (request.method != "GET") return not_found();
        return page_at(settings_.web, request.path);
    }
    if (request.path == "/api/session") return session(request);
    const std::string name = user_of(request);
    if (name.empty()) return denied("sign in first", 401);
    return answer_signed_in(request, name);
}

Response Api::session(const Request& request) {
    std::string name = user_of(request);
    std::string cookie;
    if (request.method == "POST") {
        name = text_in(object_in(request.body), "user");
        if (!users_.contains(name)) return denied("nobody of that name may use the sample", 401);
        const std::string id = holdfast::LeaseKey::random().reveal();
        if (const auto kept = run("INSERT INTO sessions VALUES (?1, ?2)", {id, name}); !kept)
            return reply(kept.error());
        cookie = cookie_name + id + "; Path=/; HttpOnly; SameSite=Strict";
    } else if (request.method == "DELETE") {
        (void)run("DELETE FROM sessions WHERE id = ?1", {session_in(request)});
        name.clear();
        cookie = std::string(cookie_name) + "; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
    } else if (request.method != "GET") {
        return not_found();
    }

    json::array users;
    for (const auto& [each, user] : users_)
        users.push_back({{"name", each}, {"may_edit", user.may_edit}, {"may_approve", user.may_approve}});
    const User* const user = name.empty() ? nullptr : &users_.at(name);
    Response answer = reply(json::object{{"user", name.empty() ? json::value() : json::value(name)},
                                         {"may_edit", user != nullptr && user->may_edit},
                                         {"may_approve", user != nullptr && user->may_approve},
                                         {"users", users},
                                         {"stale_after_ms", settings_.times.stale_after.count()},
                                         {"renew_interval_ms", settings_.times.renew_every.count()}});
    if (!cookie.empty()) answer.headers.emplace_back("Set-Cookie", cookie);
    return answer;
}

Response Api::answer_signed_in(const Request& request, const std::string& name) {
    using Handler = Response (Api::*)(const Call&);
    struct Route {
        const char* method;
        std::vector<std::string> parts;  ///< `P`, `D` and `N` stand for a project, a dashboard and a draft.
        Handler handler;
    };
    static const std::array routes{
        Route{"GET", {"P", "dashboards", "D"}, &Api::dashboard},
        Route{"PUT", {"P", "dashboards", "D"}, &Api::save},
        Route{"POST", {"P", "editing"}, &Api::begin_editing},
        Route{"PUT", {"P", "dashboards", "D", "draft"}, &Api::keep_draft},
        Route{"POST", {"P", "dashboards", "D", "draft"}, &Api::keep_draft},
        Route{"GET", {"P", "dashboards", "D", "drafts"}, &Api::drafts},
        Route{"DELETE", {"P", "dashboards", "D", "drafts", "N"}, &Api::drop_draft},
        Route{"POST", {"P", "propagation"}, &Api::propagate},
        Route{"GET", {"P", "propagation"}, &Api::propagation},
    };

    std::vector<std::string> parts = parts_of(request.path);
    parts.erase(parts.begin());  // "api"
    if (parts == std::vector<std::string>{"projects"} && request.method == "GET") return projects();
    const bool is_audit = parts == std::vector<std::string>{"audit"} && request.method == "GET";
    if (is_audit) {
        const auto project = request.query.find("project");
        parts = {project == request.query.end() ? "" : project->second};
    } else if (!parts.empty() && parts.front() == "projects") {
        parts.erase(parts.begin());
    }
    if (parts.empty() || !is_id(parts.front())) return not_found();
    const auto locks = holdfast::ProjectLocks::of(parts.front());
    if (!locks) return reply(locks.error());

    Call call{request, name, users_.at(name), *locks, parts.front()};
    call.body = object_in(request.body);
    if (is_audit) return audit(call);
    for (const Route& route : routes) {
        if (request.method != route.method || parts.size() != route.parts.size()) continue;
        bool fits = true;
        for (std::size_t i = 1; i < parts.size() && fits; ++i) {
            const bool is_place = route.parts[i] == "D" || route.parts[i] == "N";
            fits = is_place ? is_id(parts[i]) : parts[i] == route.parts[i];
            if (route.parts[i] == "D") call.dashboard = parts[i];
            if (route.parts[i] == "N") call.draft = parts[i];
        }
        if (fits) return (this->*route.handler)(call);
    }
    return not_found();
}

Response Api::projects() {
    const auto rows =
        run("SELECT p.id, p.name, d.id, d.name, d.version FROM projects p JOIN dashboards d ON d.project = p.id "
            "ORDER BY p.name, d.place");
    if (!rows) return reply(rows.error());
    json::array all;
    for (const auto& row : *rows) {
        const std::string id = row.at(0).value_or("");
        if (all.empty() || std::string_view(all.back().at("id").as_string()) != id)
            all.push_back(
                {{"id", row.at(0).value_or("")}, {"name", row.at(1).value_or("")}, {"dashboards", json::array()}});
        all.back()
            .at("dashboards")
            .as_array()
            .push_back(
                {{"id", row.at(2).value_or("")}, {"name", row.at(3).value_or("")}, {"version", number_of(row.at(4))}});
    }
    return reply(json::object{{"projects", all}});
}

Result<json::object> Api::read_dashboard(const std::string& project, const std::string& dashboard) {
    const auto rows =
        run(std::string("SELECT ") + dashboard_columns + " FROM dashboards WHERE project = ?1 AND id = ?2",
            {project, dashboard});
    if (!rows) return std::unexpected(rows.error());
    if (rows->empty()) return fail(Errc::lock_not_held, "there is no such dashboard");
    return document_of(rows->front());
}

Response Api::dashboard(const Call& call) {
    const auto found = read_dashboard(call.project, call.dashboard);
    return found ? reply(*found) : reply(found.error());
}

Result<holdfast::FencedDatabase> Api::seal_for(const Call& call) {
    const auto lock_id = holdfast::LockId::parse(text_in(call.body, "lock_id"));
    if (!lock_id) return std::unexpected(lock_id.error());
    const std::string written = call.request.header("holdfast-token");
    std::uint64_t token = 0;
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), token);
    if (error != std::errc{} || end != written.data() + written.size())
        return fail(Errc::usage, "the header Holdfast-Token is missing or no number");
    if (call.request.header("holdfast-lock") != call.locks.edit.text())
        return fail(Errc::usage, "the header Holdfast-Lock does not name the edit lock of this project");

    // Token and lock_id are public: a lease counts for nobody but its user, who does not change while it lives.
    const auto lock = call.user.store->inspect(call.locks.edit, soon());
    if (!lock) return std::unexpected(lock.error());
    const bool is_of_another = lock->lease && lock->lease->lock_id == *lock_id && lock->lease->holder.user != call.name;
    if (!call.user.may_edit || is_of_another) return fail(Errc::denied, "this is not your lease");
    return call.user.guard->seal(call.locks, holdfast::FencingToken{token}, *lock_id, "sqlite:" + settings_.database,
                                 soon());
}

Response Api::begin_editing(const Call& call) {
    // Sealed before the text is read: what a former screen has not saved by now is not saved any more.
    if (const auto sealed = seal_for(call); !sealed) return reply(sealed.error());
    auto found = read_dashboard(call.project, text_in(call.body, "dashboard"));
    if (!found) return reply(found.error());
    Call of_dashboard = call;
    of_dashboard.dashboard = text_in(call.body, "dashboard");
    auto kept = read_drafts(of_dashboard);
    if (!kept) return reply(kept.error());
    (*found)["drafts"] = std::move(*kept);
    return reply(*found);
}

Response Api::save(const Call& call) {
    const std::string text = text_in(call.body, "text");
    const std::int64_t base = number_in(call.body, "base_version", 0);
    if (text.size() > longest_text) return reply(Error{Errc::usage, "the text is longer than 256 KiB"});
    std::optional<std::int64_t> newer;
    std::string saved_at;
    const auto write = [&](holdfast::FencedDatabase& database) -> Result<void> {
        const auto updated = database.run(
            "UPDATE dashboards SET text = $1, version = version + 1, saved_by = $2, "
            "saved_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE project = $3 AND id = $4 AND version = $5",
            {text, call.name, call.project, call.dashboard, base});
        if (!updated) return std::unexpected(updated.error());
        const auto found = database.run("SELECT version, saved_at FROM dashboards WHERE project = $1 AND id = $2",
                                        {call.project, call.dashboard});
        if (!found) return std::unexpected(found.error());
        if (found->rows.empty()) return fail(Errc::lock_not_held, "there is no such dashboard");
        const std::int64_t version = number_of(found->rows.front().at(0));
        saved_at = found->rows.front().at(1).value_or("");
        if (updated->changed == 1) return {};
        newer = version;
        return fail(Errc::data_invalid, "the dashboard was changed after the version that this text began with");
    };
    auto database = seal_for(call);
    const auto saved = database ? call.user.guard->save(*database, call.locks, write, soon())
                                : Result<void>(std::unexpected(database.error()));
    if (saved) {
        // What was typed is saved now.
        (void)run("DELETE FROM drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 AND why = 'typed'",
                  {call.project, call.dashboard, call.name});
        return reply(json::object{{"version", base + 1}, {"saved_at", saved_at}});
    }

    Response answer = reply(saved.error());
    json::object document = document_of(saved.error());
    if (newer) {
        answer.status = 409;
        document["error"].as_object()["code"] = "version_conflict";
        document["version"] = *newer;
    }
    if (call.user.may_edit)
        if (auto draft = keep(call, text, base, "refused")) document["draft"] = std::move(*draft);
    answer.body = json::serialize(document);
    return answer;
}

Result<json::object> Api::keep(const Call& call, const std::string& text, std::int64_t base_version,
                               const std::string& why) {
    const bool replaces = why == "typed";
    const std::vector<holdfast::SqlValue> whose{call.project, call.dashboard, call.name};
    if (replaces) {
        const auto dropped =
            run("DELETE FROM drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 AND why = 'typed'", whose);
        if (!dropped) return std::unexpected(dropped.error());
    }
    const auto kept =
        run("INSERT INTO drafts (project, dashboard, user, text, base_version, kept_at, why) "
            "VALUES (?1, ?2, ?3, ?4, ?5, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?6) RETURNING id, kept_at",
            {call.project, call.dashboard, call.name, text, base_version, why});
    if (!kept) return std::unexpected(kept.error());
    std::vector<holdfast::SqlValue> values = whose;
    values.emplace_back(most_drafts);
    (void)run(
        "DELETE FROM drafts WHERE project = ?1 AND dashboard = ?2 AND user = ?3 AND id NOT IN (SELECT id FROM drafts "
        "WHERE project = ?1 AND dashboard = ?2 AND user = ?3 ORDER BY id DESC LIMIT ?4)",
        values);
    return json::object{{"id", number_of(kept->front().at(0))},
                        {"user", call.name},
                        {"is_mine", true},
                        {"text", text},
                        {"base_version", base_version},
                        {"kept_at", kept->front().at(1).value_or("")},
                        {"why", why}};
}

Response Api::keep_draft(const Call& call) {
    if (!call.user.may_edit) return denied("you may not edit here");
    const std::string text = text_in(call.body, "text");
    if (text.size() > longest_text) return reply(Error{Errc::usage, "the text is longer than 256 KiB"});
    const auto kept = keep(call, text, number_in(call.body, "base_version", 0), "typed");
    return kept ? reply(*kept) : reply(kept.error());
}

Result<json::array> Api::read_drafts(const Call& call) {
    const auto rows =
        run("SELECT id, user, text, base_version, kept_at, why FROM drafts WHERE project = ?1 AND dashboard = ?2 "
            "ORDER BY id DESC",
            {call.project, call.dashboard});
    if (!rows) return std::unexpected(rows.error());
    json::array all;
    for (const auto& row : *rows)
        all.push_back({{"id", number_of(row.at(0))},
                       {"user", row.at(1).value_or("")},
                       {"is_mine", row.at(1) == call.name},
                       {"text", row.at(2).value_or("")},
                       {"base_version", number_of(row.at(3))},
                       {"kept_at", row.at(4).value_or("")},
                       {"why", row.at(5).value_or("")}});
    return all;
}

Response Api::drafts(const Call& call) {
    // Of everybody who may edit: who took over from somebody sees what was not saved, too.
    if (!call.user.may_edit) return reply(json::object{{"drafts", json::array()}});
    const auto all = read_drafts(call);
    return all ? reply(json::object{{"drafts", *all}}) : reply(all.error());
}

Response Api::drop_draft(const Call& call) {
    const auto lock = call.user.store->inspect(call.locks.edit, soon());
    const bool edits = lock && lock->lease && lock->lease->holder.user == call.name;
    std::int64_t id = 0;
    std::from_chars(call.draft.data(), call.draft.data() + call.draft.size(), id);
    const auto dropped = run(
        "DELETE FROM drafts WHERE id = ?1 AND project = ?2 AND dashboard = ?3 AND (user = ?4 OR ?5 = 1) RETURNING id",
        {id, call.project, call.dashboard, call.name, std::int64_t{edits ? 1 : 0}});
    if (!dropped) return reply(dropped.error());
    return dropped->empty() ? not_found() : reply(json::object{{"dropped", id}});
}

Response Api::propagate(const Call& call) {
    if (!call.user.may_edit) return denied("you may not propagate here");
    PropagationOrder order{.project = call.project, .dashboard = text_in(call.body, "dashboard"), .by = call.name};
    order.steps = static_cast<int>(std::clamp<std::int64_t>(number_in(call.body, "steps", order.steps), 1, 100));
    order.step_time =
        milliseconds{std::clamp<std::int64_t>(number_in(call.body, "step_ms", order.step_time.count()), 0, 60'000)};
    const auto job = propagations_.start(*call.user.guard, order);
    return job ? reply(json::object{{"job", *job}}, 202) : reply(job.error());
}

Response Api::propagation(const Call& call) {
    const auto own = propagations_.progress(call.project);
    const auto lock = call.user.store->inspect(call.locks.propagation, soon());
    const bool is_held = lock && lock->state == holdfast::LockState::held;
    if (is_held && (!own || own->job != lock->lease->holder.text))
        return reply(json::object{{"state", "elsewhere"},
                                  {"job", lock->lease->holder.text},
                                  {"by", lock->lease->holder.user},
                                  {"progress", 0},
                                  {"step", 0},
                                  {"steps", 0},
                                  {"error", nullptr}});
    if (!own)
        return reply(json::object{{"state", "idle"},
                                  {"job", nullptr},
                                  {"by", nullptr},
                                  {"progress", 0},
                                  {"step", 0},
                                  {"steps", 0},
                                  {"error", nullptr}});
    return reply(json::object{{"state", name_of(own->state)},
                              {"job", own->job},
                              {"by", own->by},
                              {"progress", own->steps == 0 ? 100 : own->step * 100 / own->steps},
                              {"step", own->step},
                              {"steps", own->steps},
                              {"error", own->error ? document_of(*own->error).at("error") : json::value()}});
}

Response Api::audit(const Call& call) {
    const auto leases = call.user.guard->audit(call.locks, soon());
    if (!leases) return reply(leases.error());
    const bool only_active = call.request.query.contains("active");
    json::array entries;
    for (const holdfast::ProjectLease& lease : *leases)
        if (!only_active || !lease.released_at) entries.push_back(document_of(lease, call.project));
    return reply(json::object{{"entries", entries}});
}

}  // namespace cockpit
