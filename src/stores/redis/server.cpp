#include "stores/redis/server.hpp"

#include <fmt/format.h>

namespace holdfast::stores::redis {

Result<std::vector<Message>> Server::exchange(std::span<const Command> commands, Effect effect, Deadline deadline) {
    const CallBudget budget(clock_, deadline);
    while (true) {
        auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        if (budget.over()) return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
        auto answers = (*connection)->exchange(commands, budget);
        if (answers) return std::move(*answers);
        const ExchangeError& error = answers.error();
        const bool may_have_changed = error.sent && effect == Effect::changes;
        if (may_have_changed)
            return fail(Errc::outcome_unknown, fmt::format("Redis at {} was sent the change and has not answered: {}",
                                                           address_.place(), error.why));
        if (!connection->was_idle())
            return fail(Errc::store_unavailable,
                        fmt::format("Redis at {} is not reached: {}", address_.place(), error.why));
    }
}

Result<Message> Server::ask(const Command& command, Deadline deadline) {
    auto answers = exchange({&command, 1}, Effect::none, deadline);
    if (!answers) return std::unexpected(answers.error());
    Message& answer = answers->front();
    if (answer.value().is_error()) return std::unexpected(refusal(address_, answer.value().text()));
    return std::move(answer);
}

}  // namespace holdfast::stores::redis
