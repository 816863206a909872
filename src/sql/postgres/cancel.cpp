#include "sql/postgres/cancel.hpp"

#include <array>
#include <libpq-fe.h>

namespace holdfast::sql::postgres {

void Canceller::Free::operator()(pg_cancel* handle) const { PQfreeCancel(handle); }

Canceller::Canceller(const Connection& connection) : handle_(PQgetCancel(connection.handle())) {}

Result<void> Canceller::cancel() const {
    // 256 bytes is what libpq recommends. Its messages name no secret: only the socket and the system's error.
    std::array<char, 256> said{};
    if (PQcancel(handle_.get(), said.data(), static_cast<int>(said.size())) == 1) return {};
    return fail(Errc::store_unavailable, std::string("cannot cancel the statement: ") + said.data());
}

}  // namespace holdfast::sql::postgres
