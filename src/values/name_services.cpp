#include "values/users.hpp"

#include <array>
#include <pwd.h>

namespace holdfast {

std::optional<std::string> listed_user_name(uid_t uid) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return std::nullopt;
    return found->pw_name;
}

}  // namespace holdfast
