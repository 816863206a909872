#pragma once

#include "holdfast/edit.hpp"
#include "holdfast/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

/// Who may use the sample: four made-up people without passwords, each with a token of the daemon. What they may do
/// with locks is decided there, by their tokens; a real application signs people in and keeps the rest.
namespace cockpit {

struct User {
    bool may_edit = false;
    bool may_approve = false;
    std::string token{};                       ///< Of the daemon. Never leaves this server but for the daemon.
    std::unique_ptr<holdfast::Store> store{};  ///< The daemon, in the name of this user.
    std::unique_ptr<holdfast::EditGuard> guard{};
};

/// By name. Reads `NAME.token` from `folder`. Throws `std::runtime_error` if one is missing.
[[nodiscard]] std::map<std::string, User> users_in(const std::string& folder, std::uint16_t daemon,
                                                   const holdfast::EditTimes& times);

}  // namespace cockpit
