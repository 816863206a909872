// Part of the short program, instead of name_services.cpp: name services are loaded. See src/cli/short.cpp.

#include "values/users.hpp"

namespace holdfast {

std::optional<std::string> listed_user_name(uid_t) { return std::nullopt; }

}  // namespace holdfast
