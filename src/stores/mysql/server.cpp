#include "stores/mysql/server.hpp"

#include <fmt/format.h>

namespace holdfast::stores::mysql {

Result<std::unique_ptr<Connection>> Server::connect(const CallBudget& budget) {
    const Deadline deadline = Deadline::in(clock_, budget.left());
    Error why{Errc::store_unavailable, "no server is named"};
    for (const Address::Endpoint& endpoint : address_.endpoints) {
        auto connection = connect(endpoint, deadline);
        if (connection) return connection;
        // A server that answered and refused counts for more than others that are away.
        if (why.code != Errc::denied) why = std::move(connection.error());
    }
    return std::unexpected(std::move(why));
}

Result<std::unique_ptr<Connection>> Server::connect(const Address::Endpoint& endpoint, Deadline deadline) {
    const auto doing = [&] { return fmt::format("connect to {}", address_.shown); };
    auto opened = Connection::open(address_, endpoint, clock_, deadline);
    if (!opened) return std::unexpected(error_of(opened.error(), doing()));
    auto connection = std::make_unique<Connection>(std::move(*opened));
    auto facts = set_up(*connection, deadline);
    if (!facts) return std::unexpected(error_of(facts.error(), doing()));
    // What a replica shows is old, and a user who may write to one all the same would split the store in two.
    if (facts->read_only)
        return fail(Errc::store_unavailable,
                    fmt::format("the server of {} is read-only: a replica cannot grant locks", address_.shown));
    const std::scoped_lock lock(mutex_);
    facts_ = std::move(*facts);
    return connection;
}

ServerFacts Server::facts() const {
    const std::scoped_lock lock(mutex_);
    return facts_;
}

}  // namespace holdfast::stores::mysql
