#include "values/users.hpp"

#include "values/small_file.hpp"

#include <algorithm>
#include <string_view>

namespace holdfast {

std::optional<std::string> local_user_name(uid_t uid) {
    // A line is `name:password:uid:…`.
    const std::string all = small_file("/etc/passwd").value_or("");
    const std::string digits = std::to_string(uid);
    for (std::string_view rest = all; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto name = line.find(':');
        const auto password = line.find(':', name + 1);
        if (name == 0 || password == std::string_view::npos || line[0] == '+' || line[0] == '-') continue;
        if (line.substr(password + 1).starts_with(digits + ":")) return std::string(line.substr(0, name));
    }
    return std::nullopt;
}

std::string user_name(uid_t uid) {
    // Not getenv("USER"): sudo and containers leave it wrong, and two users must not look alike. The file first,
    // because asking the system's name services for it takes several times as long.
    if (auto local = local_user_name(uid)) return *std::move(local);
    return listed_user_name(uid).value_or(std::to_string(uid));
}

}  // namespace holdfast
