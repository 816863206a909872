#pragma once

#include "database.hpp"
#include "holdfast/edit.hpp"
#include "http.hpp"
#include "propagations.hpp"
#include "proxy.hpp"
#include "users.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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

    [[nodiscard]] Response answer_signed_in(const Request& request, const std::string& name);
    [[nodiscard]] Response session(const Request& request);
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

    [[nodiscard]] std::string user_of(const Request& request);
    [[nodiscard]] holdfast::Result<holdfast::FencedDatabase> seal_for(const Call& call);
    [[nodiscard]] holdfast::Result<Rows> run(const std::string& sql,
                                             const std::vector<holdfast::SqlValue>& values = {});
    [[nodiscard]] holdfast::Result<boost::json::object> read_dashboard(const std::string& project,
                                                                       const std::string& dashboard);
    [[nodiscard]] holdfast::Result<boost::json::array> read_drafts(const Call& call);
    [[nodiscard]] holdfast::Result<boost::json::object> keep(const Call& call, const std::string& text,
                                                             std::int64_t base_version, const std::string& why);

    const Settings settings_;
    std::map<std::string, User> users_;
    Proxy proxy_;
    std::mutex mutex_;  ///< Guards the connection.
    Database database_;
    Propagations propagations_;
};

}  // namespace cockpit
