#pragma once

#include "dashboards.hpp"
#include "database.hpp"
#include "drafts.hpp"
#include "holdfast/edit.hpp"
#include "http.hpp"
#include "propagations.hpp"
#include "proxy.hpp"
#include "sessions.hpp"
#include "users.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace cockpit {

struct Settings {
    std::uint16_t port = 0;
    std::uint16_t daemon = 0;
    std::string database{};       ///< A SQLite file.
    std::string tokens{};         ///< A folder with a token for each user.
    std::filesystem::path web{};  ///< The pages.
    holdfast::EditTimes times{};
};

/// What the sample's server answers: `/api`, and `/v1` through the daemon. `docs/reference/edit-locks.md` lists it.
class Api {
public:
    explicit Api(const Settings& settings);

    [[nodiscard]] Response answer(const Request& request);
    /// Of a path below `/v1`: see `HttpServer::Relay`.
    [[nodiscard]] std::optional<Response> relay(const Request& request, int socket);

private:
    /// A request of somebody who is signed in, with what its path names.
    struct Call;

    [[nodiscard]] Response answer_signed_in(const Request& request, boost::json::object body, const std::string& name);
    [[nodiscard]] Response session(const Request& request, const boost::json::object& body);
    [[nodiscard]] Response projects();
    [[nodiscard]] Response dashboard(const Call& call);
    [[nodiscard]] Response begin_editing(const Call& call);
    [[nodiscard]] Response save(const Call& call);
    [[nodiscard]] Response keep_draft(const Call& call);
    [[nodiscard]] Response drafts(const Call& call);
    [[nodiscard]] Response drop_draft(const Call& call);
    [[nodiscard]] Response propagate(const Call& call);
    [[nodiscard]] Response propagation(const Call& call);
    [[nodiscard]] Response audit(const Call& call);

    [[nodiscard]] holdfast::Result<holdfast::FencedDatabase> seal_for(const Call& call);

    const Settings settings_;
    std::map<std::string, User> users_;
    Proxy proxy_;
    Database database_;
    Sessions sessions_;
    Dashboards dashboards_;
    Drafts drafts_;
    Propagations propagations_;
};

}  // namespace cockpit
