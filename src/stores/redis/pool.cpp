#include "stores/redis/pool.hpp"

#include <fmt/format.h>

namespace holdfast::stores::redis {
namespace {

/// More than this many callers at once are rare, and servers do not like idle connections.
constexpr std::size_t most_idle = 64;

}  // namespace

std::unique_ptr<Connection> Pool::idle() {
    while (true) {
        std::unique_ptr<Connection> connection;
        {
            const std::scoped_lock lock(mutex_);
            if (idle_.empty()) return nullptr;
            connection = std::move(idle_.back());
            idle_.pop_back();
        }
        // A server that restarted has closed it. Sending into it would leave the outcome of a change unknown.
        if (connection->is_alive()) return connection;
    }
}

Result<std::unique_ptr<Connection>> Pool::open(const Patience& patience) {
    if (auto may = attempts_.wait(patience.left()); !may) return std::unexpected(may.error());
    auto opened = Connection::open(address_, patience);
    opened ? attempts_.succeeded() : attempts_.failed(opened.error());
    return opened;
}

void Pool::keep(std::unique_ptr<Connection> connection) {
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(connection));
}

Result<std::vector<Message>> Pool::exchange(std::span<const Command> commands, Effect effect, Deadline deadline) {
    const Patience patience(clock_, deadline);
    auto connection = idle();
    while (true) {
        const bool is_fresh = connection == nullptr;
        if (is_fresh) {
            auto opened = open(patience);
            if (!opened) return std::unexpected(opened.error());
            connection = std::move(*opened);
        }
        if (patience.left_ms() == 0) {
            keep(std::move(connection));
            return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
        }
        auto answers = connection->exchange(commands, patience);
        if (answers) {
            keep(std::move(connection));
            return std::move(*answers);
        }
        connection.reset();
        const Broken& broken = answers.error();
        const bool may_have_changed = broken.sent && effect == Effect::changes;
        if (may_have_changed)
            return fail(Errc::outcome_unknown, fmt::format("Redis at {} was sent the change and has not answered: {}",
                                                           address_.place(), broken.why));
        if (is_fresh)
            return fail(Errc::store_unavailable,
                        fmt::format("Redis at {} is not reached: {}", address_.place(), broken.why));
    }
}

Result<Message> Pool::ask(const Command& command, Deadline deadline) {
    auto answers = exchange({&command, 1}, Effect::none, deadline);
    if (!answers) return std::unexpected(answers.error());
    Message& answer = answers->front();
    if (answer.value().is_error()) return std::unexpected(refusal(address_, answer.value().text()));
    return std::move(answer);
}

}  // namespace holdfast::stores::redis
