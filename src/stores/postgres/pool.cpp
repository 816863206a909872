#include "stores/postgres/pool.hpp"

namespace holdfast::stores::postgres {
namespace {

constexpr std::size_t most_idle = 32;

}  // namespace

Result<std::unique_ptr<Connection>> Pool::take(const Budget& budget) {
    while (true) {
        std::unique_ptr<Connection> idle;
        {
            const std::scoped_lock lock(mutex_);
            if (idle_.empty()) break;
            idle = std::move(idle_.back());
            idle_.pop_back();
        }
        if (!idle->is_gone()) return idle;
    }
    if (auto may = attempts_.wait(budget.left()); !may) return std::unexpected(may.error());
    auto opened = Connection::open(settings_, budget);
    opened ? attempts_.succeeded() : attempts_.failed(opened.error());
    return opened;
}

void Pool::give(std::unique_ptr<Connection> connection) {
    if (!connection || !connection->usable()) return;
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(connection));
}

void Pool::drop_idle() {
    std::vector<std::unique_ptr<Connection>> dropped;
    const std::scoped_lock lock(mutex_);
    dropped.swap(idle_);
}

}  // namespace holdfast::stores::postgres
