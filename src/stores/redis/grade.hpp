#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

/// What a server says of itself, and what follows for the promise.
struct ServerGrading : base::Grading {
    std::vector<Finding> findings{};
    std::vector<std::string> missing_rights{};  ///< Commands that every change needs.
};

/// Asks the server. Refused with `store_unsafe` where no grant could be kept at all.
[[nodiscard]] Result<ServerGrading> grading_of(Server& server, const Keys& keys, Deadline deadline);

/// Nothing may be changed without all of them.
[[nodiscard]] Error lacking(const Address& address, const std::vector<std::string>& missing_rights);

/// Whether the server would take a change now: sends it one that changes nothing.
[[nodiscard]] Finding examine_writing(Server& server, const Keys& keys, Deadline deadline);

/// `Redis 7.0.15`, `Valkey 8.0.1`: what INFO says of the program. Valkey also gives the version of Redis whose
/// commands it has.
[[nodiscard]] std::string program_in(std::string_view info);

}  // namespace holdfast::stores::redis
