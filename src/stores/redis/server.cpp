#include "stores/redis/server.hpp"

#include <fmt/format.h>

namespace holdfast::stores::redis {

Result<std::vector<Message>> Server::exchange(std::span<const Command> commands, Effect effect, Deadline deadline) {
    const base::CallBudget budget(clock_, deadline);
    while (true) {
        auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        if (budget.over()) return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
        auto answers = (*connection)->exchange(commands, budget);
        if (answers) is_replica_ = (*connection)->is_replica();
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

Result<void> Server::expect_master(Deadline deadline) {
    if (!is_replica_) return {};
    // A failover makes a master of it. Then what is known of old connections says nothing.
    const base::CallBudget budget(clock_, deadline);
    const auto fresh = pool_.take_fresh(budget);
    if (!fresh) return std::unexpected(fresh.error());
    is_replica_ = (*fresh)->is_replica();
    if (!is_replica_) return {};
    return fail(Errc::store_unavailable,
                fmt::format("Redis at {} is a replica, and only its master can be used", address_.place()));
}

Result<Message> Server::ask(const Command& command, Deadline deadline) {
    auto answers = exchange({&command, 1}, Effect::none, deadline);
    if (!answers) return std::unexpected(answers.error());
    Message& answer = answers->front();
    if (answer.value().is_error()) return std::unexpected(refusal(address_, answer.value().text()));
    return std::move(answer);
}

}  // namespace holdfast::stores::redis
