#include "sql/mysql/cancel.hpp"

#include <fmt/format.h>

namespace holdfast::sql::mysql {

Result<Canceller> Canceller::of(Connection& connection, const Address& address, const Address::Endpoint& endpoint,
                                const Clock& clock, Deadline deadline) {
    auto asked = connection.run(Sql("SELECT CONNECTION_ID()"), deadline);
    if (!asked) return std::unexpected(error_of(asked.error(), "read the number of the connection"));
    const auto row = asked->front().next();
    const auto id = row ? static_cast<std::uint64_t>(row->number(0)) : 0;
    if (id == 0 || id != connection.told_id())
        return fail(Errc::store_unsafe,
                    fmt::format("{} is reached through a proxy that numbers connections itself, so a statement cannot "
                                "be cancelled; connect to the server directly",
                                address.shown));
    return Canceller(address, endpoint, clock, id);
}

Result<void> Canceller::cancel(Deadline deadline) const {
    auto connection = Connection::open(*address_, endpoint_, *clock_, deadline);
    if (!connection) return std::unexpected(error_of(connection.error(), "connect to cancel a statement"));
    const auto killed = connection->run(Sql("KILL QUERY ") << id_, deadline);
    // 1094: no such connection, so nothing runs on it.
    if (!killed && killed.error().code != 1094)
        return std::unexpected(error_of(killed.error(), "cancel the statement"));
    return {};
}

}  // namespace holdfast::sql::mysql
