#include "stores/mysql/pool.hpp"

#include <fmt/format.h>

namespace holdfast::stores::mysql {
namespace {

/// More are closed when they come back.
constexpr std::size_t most_idle = 32;

}  // namespace

Lent::~Lent() {
    if (connection_) pool_->give_back(std::move(connection_));
}

Result<Lent> Pool::take(Deadline deadline) {
    {
        const std::scoped_lock lock(mutex_);
        if (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            return Lent(*this, std::move(connection), true);
        }
    }
    return take_fresh(deadline);
}

Result<Lent> Pool::take_fresh(Deadline deadline) {
    if (auto may = attempts_.wait(deadline.remaining(clock_)); !may) return std::unexpected(may.error());
    Result<std::unique_ptr<Connection>> connection = fail(Errc::store_unavailable, "no server is named");
    for (const Address::Endpoint& endpoint : address_.endpoints) {
        connection = connect(endpoint, deadline);
        if (!connection) continue;
        attempts_.succeeded();
        return Lent(*this, std::move(*connection), false);
    }
    attempts_.failed(connection.error());
    return std::unexpected(connection.error());
}

Result<std::unique_ptr<Connection>> Pool::connect(const Address::Endpoint& endpoint, Deadline deadline) {
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

void Pool::give_back(std::unique_ptr<Connection> connection) {
    if (!connection->usable()) return;
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(connection));
}

ServerFacts Pool::facts() const {
    const std::scoped_lock lock(mutex_);
    return facts_;
}

}  // namespace holdfast::stores::mysql
