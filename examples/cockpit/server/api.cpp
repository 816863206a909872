#include "api.hpp"

#include "json.hpp"
#include "pages.hpp"
#include "replies.hpp"

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

holdfast::Deadline soon() { return holdfast::Deadline::in(holdfast::host_clock(), to_answer); }

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
    json::object body{};
    std::string project{};
    std::string dashboard{};
    std::string draft{};
    /// What the body says of a text, by this user in this place.
    [[nodiscard]] Draft typed() const {
        return {.project = project,
                .dashboard = dashboard,
                .user = name,
                .text = text_in(body, "text"),
                .base_version = number_in(body, "base_version", 0),
                .tab = text_in(body, "tab"),
                .is_private = is_in(body, "private")};
    }
};

Api::Api(const Settings& settings)
    : settings_(settings),
      users_(users_in(settings.tokens, settings.daemon, settings.times)),
      proxy_(settings.daemon),
      database_(settings.database),
      sessions_(database_, users_),
      dashboards_(database_),
      drafts_(database_),
      propagations_("sqlite:" + settings.database) {}

std::optional<Response> Api::relay(const Request& request, int socket) {
    if (is_foreign(request, settings_.port)) return denied("a page of another origin may not ask this");
    const std::string name = sessions_.user_of(request);
    if (name.empty()) return denied("sign in first", 401);
    return proxy_.relay(request, users_.at(name).token, socket);
}

Response Api::answer(const Request& request) {
    if (is_foreign(request, settings_.port)) return denied("a page of another origin may not ask this");
    if (!request.path.starts_with("/api/")) {
        if (request.method != "GET") return not_found();
        return page_at(settings_.web, request.path);
    }
    auto body = object_in(request.body);
    if (!body) return reply(body.error());
    if (request.path == "/api/session") return session(request, *body);
    const std::string name = sessions_.user_of(request);
    if (name.empty()) return denied("sign in first", 401);
    return answer_signed_in(request, std::move(*body), name);
}

Response Api::session(const Request& request, const json::object& body) {
    std::string name = sessions_.user_of(request);
    std::string cookie;
    if (request.method == "POST") {
        name = text_in(body, "user");
        if (!users_.contains(name)) return denied("nobody of that name may use the sample", 401);
        auto begun = sessions_.begin(name);
        if (!begun) return reply(begun.error());
        cookie = std::move(*begun);
    } else if (request.method == "DELETE") {
        cookie = sessions_.end(request);
        name.clear();
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

Response Api::answer_signed_in(const Request& request, json::object body, const std::string& name) {
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

    Call call{request, name, users_.at(name), *locks, std::move(body), parts.front()};
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
    const auto all = dashboards_.by_project();
    return all ? reply(json::object{{"projects", *all}}) : reply(all.error());
}

Response Api::dashboard(const Call& call) {
    const auto found = dashboards_.read(call.project, call.dashboard);
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
    const std::string dashboard = text_in(call.body, "dashboard");
    auto found = dashboards_.read(call.project, dashboard);
    if (!found) return reply(found.error());
    auto kept = drafts_.of(call.project, dashboard, call.name);
    if (!kept) return reply(kept.error());
    (*found)["drafts"] = std::move(*kept);
    return reply(*found);
}

Response Api::save(const Call& call) {
    const Draft typed = call.typed();
    if (typed.text.size() > longest_text) return reply(Error{Errc::usage, "the text is longer than 256 KiB"});
    TextToSave text{.project = call.project,
                    .dashboard = call.dashboard,
                    .text = typed.text,
                    .base_version = typed.base_version,
                    .by = call.name};
    auto database = seal_for(call);
    const auto write = [&text](holdfast::FencedDatabase& inside) { return text.write_in(inside); };
    const auto saved = database ? call.user.guard->save(*database, call.locks, write, soon())
                                : Result<void>(std::unexpected(database.error()));
    if (saved) {
        drafts_.forget_typed(typed);
        return reply(json::object{{"version", typed.base_version + 1}, {"saved_at", text.saved_at}});
    }

    Response answer = reply(saved.error());
    json::object document = document_of(saved.error());
    if (text.newer) {
        answer.status = 409;
        document["error"].as_object()["code"] = "version_conflict";
        document["version"] = *text.newer;
    }
    if (call.user.may_edit)
        if (auto draft = drafts_.keep_refused(typed)) document["draft"] = std::move(*draft);
    answer.body = json::serialize(document);
    return answer;
}

Response Api::keep_draft(const Call& call) {
    if (!call.user.may_edit) return denied("you may not edit here");
    const Draft typed = call.typed();
    if (typed.text.size() > longest_text) return reply(Error{Errc::usage, "the text is longer than 256 KiB"});
    const auto kept = drafts_.keep_typed(typed);
    return kept ? reply(*kept) : reply(kept.error());
}

Response Api::drafts(const Call& call) {
    if (!call.user.may_edit) return reply(json::object{{"drafts", json::array()}});
    const auto all = drafts_.of(call.project, call.dashboard, call.name);
    return all ? reply(json::object{{"drafts", *all}}) : reply(all.error());
}

Response Api::drop_draft(const Call& call) {
    const auto lock = call.user.store->inspect(call.locks.edit, soon());
    const bool edits = lock && lock->lease && lock->lease->holder.user == call.name;
    const std::int64_t id = number_of(call.draft);
    const auto dropped = drafts_.drop(id, call.typed(), edits);
    if (!dropped) return reply(dropped.error());
    return *dropped ? reply(json::object{{"dropped", id}}) : not_found();
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
