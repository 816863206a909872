#pragma once

#include "stores/redis/server.hpp"

namespace holdfast::stores::redis {

/// What one run of the script is given.
struct ScriptCall {
    std::uint64_t key_count = 0;
    Command keys{};
    Command arguments{};

    void add_key(std::string_view key) {
        keys.add(key);
        ++key_count;
    }
};

/// Runs locks.lua; the server knows it by its hash, or is given its text once more. An error that the script
/// met is an error here.
[[nodiscard]] Result<Message> run_script(Server& server, const ScriptCall& call, Effect effect, Deadline deadline);

}  // namespace holdfast::stores::redis
