#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace holdfast {

/// The name of a user that the system's own file lists.
[[nodiscard]] std::optional<std::string> local_user_name(uid_t uid);

/// The name of a user that the system's name services know, LDAP for example.
[[nodiscard]] std::optional<std::string> listed_user_name(uid_t uid);

/// The user's name for a holder, or the number if there is no name.
[[nodiscard]] std::string user_name(uid_t uid);

}  // namespace holdfast
