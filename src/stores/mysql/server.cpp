#include "stores/mysql/server.hpp"

#include <fmt/format.h>

namespace holdfast::stores::mysql {

Result<std::unique_ptr<Connection>> Server::connect(const base::CallBudget& budget) {
    const Deadline deadline = Deadline::in(clock_, budget.left());
    Error why{Errc::store_unavailable, "no server is named"};
    std::optional<Connected> readable;
    for (const Address::Endpoint& endpoint : address_.endpoints) {
        auto connected = connect(endpoint, deadline);
        if (connected && connected->facts.read_only) {
            if (!readable) readable = std::move(*connected);
            continue;
        }
        if (connected) return use(std::move(*connected));
        // Prefer the error of a server that answered to that of servers that cannot be reached.
        if (why.code != Errc::denied) why = std::move(connected.error());
    }
    // What a replica shows may be old, and is better than nothing.
    if (readable) return use(std::move(*readable));
    return std::unexpected(std::move(why));
}

Result<Server::Connected> Server::connect(const Address::Endpoint& endpoint, Deadline deadline) const {
    const auto doing = [&] { return fmt::format("connect to {}", address_.shown); };
    auto opened = Connection::open(address_, endpoint, clock_, deadline);
    if (!opened) return std::unexpected(error_of(opened.error(), doing()));
    auto connection = std::make_unique<Connection>(std::move(*opened));
    auto facts = set_up(*connection, deadline);
    if (!facts) return std::unexpected(error_of(facts.error(), doing()));
    return Connected{std::move(connection), std::move(*facts)};
}

std::unique_ptr<Connection> Server::use(Connected connected) {
    const std::scoped_lock lock(mutex_);
    facts_ = std::move(connected.facts);
    return std::move(connected.connection);
}

Error Server::is_read_only() const {
    return {Errc::store_unavailable,
            fmt::format("the server of {} is read-only: a replica cannot grant locks", address_.shown)};
}

ServerFacts Server::facts() const {
    const std::scoped_lock lock(mutex_);
    return facts_;
}

}  // namespace holdfast::stores::mysql
