#include "sessions.hpp"

#include "holdfast/lease.hpp"

#include <algorithm>
#include <string_view>

namespace cockpit {
namespace {

constexpr auto cookie_name = "cockpit_session=";
constexpr auto cookie_rules = "; Path=/; HttpOnly; SameSite=Strict";

std::string session_in(const Request& request) {
    const std::string cookies = request.header("cookie");
    const auto found = cookies.find(cookie_name);
    if (found == std::string::npos) return "";
    const auto begin = found + std::string_view(cookie_name).size();
    return cookies.substr(begin, std::min(cookies.find(';', begin), cookies.size()) - begin);
}

}  // namespace

bool is_foreign(const Request& request, std::uint16_t port) {
    const std::string own = ":" + std::to_string(port);
    const std::string host = request.header("host");
    if (host != "127.0.0.1" + own && host != "localhost" + own) return true;
    const std::string site = request.header("sec-fetch-site");
    if (!site.empty() && site != "same-origin" && site != "none") return true;
    const std::string origin = request.header("origin");
    return !origin.empty() && origin != "http://" + host;
}

std::string Sessions::user_of(const Request& request) {
    const std::string session = session_in(request);
    if (session.empty()) return "";
    const auto found = database_.run("SELECT user FROM sessions WHERE id = ?1", {session});
    std::string name = found && !found->empty() ? found->front().at(0).value_or("") : "";
    const std::string claimed = request.header("cockpit-user");
    const bool is_another = !claimed.empty() && claimed != name;
    return users_.contains(name) && !is_another ? name : "";
}

holdfast::Result<std::string> Sessions::begin(const std::string& user) {
    const std::string id = holdfast::LeaseKey::random().reveal();
    const auto kept = database_.run("INSERT INTO sessions VALUES (?1, ?2)", {id, user});
    if (!kept) return std::unexpected(kept.error());
    return cookie_name + id + cookie_rules;
}

std::string Sessions::end(const Request& request) {
    (void)database_.run("DELETE FROM sessions WHERE id = ?1", {session_in(request)});
    return std::string(cookie_name) + cookie_rules + "; Max-Age=0";
}

}  // namespace cockpit
