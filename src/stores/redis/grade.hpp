#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

/// A server's facts, and the grade that follows from them.
struct ServerGrading : base::Grading {
    std::vector<Finding> findings{};
    std::vector<std::string> missing_rights{};  ///< Commands that every change needs.
};

/// Asks the server. Refused with `store_unsafe` where no grant could be kept at all.
[[nodiscard]] Result<ServerGrading> grading_of(Server& server, const Keys& keys, Deadline deadline);

/// The commands that a change needs. Without all of them nothing may be changed.
[[nodiscard]] Error lacking(const Address& address, const std::vector<std::string>& missing_rights);

/// Sends a write that changes nothing, to see whether the server would accept a change now.
[[nodiscard]] Finding examine_writing(Server& server, const Keys& keys, Deadline deadline);

/// `Redis 7.0.15`, `Valkey 8.0.1`: what INFO says of the program. Valkey also gives the version of Redis whose
/// commands it has.
[[nodiscard]] std::string program_in(std::string_view info);

}  // namespace holdfast::stores::redis
