#pragma once

#include "database.hpp"
#include "http.hpp"
#include "users.hpp"

#include <cstdint>
#include <map>
#include <string>

/// Who sends a request: the browser's cookie says it, and a request of a page of another origin is nobody's.
namespace cockpit {

/// A page of another origin may send requests here, too: its browser says so.
[[nodiscard]] bool is_foreign(const Request& request, std::uint16_t port);

class Sessions {
public:
    /// Both must outlive it.
    Sessions(Database& database, const std::map<std::string, User>& users) : database_(database), users_(users) {}

    /// Empty if nobody is signed in. A page says in `Cockpit-User` whose it is: when somebody else has signed in since,
    /// in another tab of the same browser, its requests must not be made in that one's name.
    [[nodiscard]] std::string user_of(const Request& request);
    /// Signs a user in. The answer is the cookie to be set.
    [[nodiscard]] holdfast::Result<std::string> begin(const std::string& user);
    /// Signs out whoever sent this.
    [[nodiscard]] std::string end(const Request& request);

private:
    Database& database_;
    const std::map<std::string, User>& users_;
};

}  // namespace cockpit
