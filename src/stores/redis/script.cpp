#include "stores/redis/script.hpp"

#include "stores/redis/script_text.hpp"
#include "values/hex.hpp"

#include <array>
#include <openssl/evp.h>

namespace holdfast::stores::redis {
namespace {

/// The hash by which Redis finds the script.
const std::string& script_name() {
    static const std::string name = [] {
        std::array<std::uint8_t, 20> digest{};
        EVP_Digest(script_text.data(), script_text.size(), digest.data(), nullptr, EVP_sha1(), nullptr);
        return to_hex(digest);
    }();
    return name;
}

Command command_of(std::string_view verb, std::string_view script, const ScriptCall& call) {
    Command command{verb, script};
    command.add(call.key_count);
    command.append(call.keys);
    command.append(call.arguments);
    return command;
}

}  // namespace

Result<Message> run_script(Server& server, const ScriptCall& call, Effect effect, Deadline deadline) {
    for (const bool by_name : {true, false}) {
        const Command command =
            by_name ? command_of("EVALSHA", script_name(), call) : command_of("EVAL", script_text, call);
        auto answers = server.exchange({&command, 1}, effect, deadline);
        if (!answers) return std::unexpected(answers.error());
        Message& answer = answers->front();
        const std::string_view text = answer.value().text();
        if (!answer.value().is_error()) return std::move(answer);
        // A server that restarted has forgotten it.
        if (by_name && text.starts_with("NOSCRIPT")) continue;
        if (auto known = known_refusal(server.address(), text)) return std::unexpected(std::move(*known));
        Error error = refusal(server.address(), text);
        if (effect == Effect::changes) error.code = Errc::outcome_unknown;
        return std::unexpected(std::move(error));
    }
    return fail(Errc::store_unavailable, "Redis at " + server.address().place() + " does not run scripts");
}

}  // namespace holdfast::stores::redis
