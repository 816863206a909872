#pragma once

#include "stores/redis/command.hpp"
#include "stores/redis/keys.hpp"
#include "stores/redis/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::stores::redis {

/// Asks the server which of the commands of locks.lua this user may not run on the store's keys. A script stops at such
/// a command and keeps its earlier writes, so a lock would be left half changed.
[[nodiscard]] Command ask_rights(const Keys& keys);

/// The names of these commands. Empty if the server cannot tell; Redis can since 7.0.
[[nodiscard]] std::optional<std::vector<std::string>> missing_rights(Value answer);

}  // namespace holdfast::stores::redis
