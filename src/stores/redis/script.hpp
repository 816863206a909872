#pragma once

#include "stores/redis/server.hpp"

namespace holdfast::stores::redis {

/// The keys and arguments of one run of the script.
struct ScriptCall {
    std::uint64_t key_count = 0;
    Command keys{};
    Command arguments{};

    void add_key(std::string_view key) {
        keys.add(key);
        ++key_count;
    }
};

/// Runs locks.lua by its hash, and sends its text if the server does not have it. An error inside the script is an
/// error here.
[[nodiscard]] Result<Message> run_script(Server& server, const ScriptCall& call, Effect effect, Deadline deadline);

}  // namespace holdfast::stores::redis
