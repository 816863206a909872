#pragma once

#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <libpq-fe.h>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

/// What a person with psql can do, and what a test needs to name its server.
namespace holdfast::tests {

[[nodiscard]] inline std::string postgres_url(std::uint16_t port, const std::string& parameters = "") {
    return fmt::format("postgres://{}:{}@127.0.0.1:{}/postgres{}{}", server_user_name, server_password, port,
                       parameters.empty() ? "" : "?", parameters);
}

/// A schema that nobody else uses.
[[nodiscard]] inline std::string random_schema() {
    std::random_device random;
    return fmt::format("hf_{:08x}{:08x}", random(), random());
}

/// A connection for statements by hand. Throws what goes wrong.
class ByHand {
public:
    explicit ByHand(std::uint16_t port)
        : connection_(PQconnectdb(postgres_url(port).replace(0, 8, "postgresql").c_str()), PQfinish) {
        if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
        PQsetNoticeReceiver(connection_.get(), [](void*, const PGresult*) {}, nullptr);
    }

    /// The first column of the first row, if there is one.
    std::string operator()(const std::string& sql) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_.get(), sql.c_str()), PQclear);
        const auto status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            throw std::runtime_error(PQerrorMessage(connection_.get()));
        return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
    }

    /// Bytes, as a literal of a statement.
    [[nodiscard]] static std::string bytes(const std::string& text) {
        std::string literal = "'\\x";
        for (const char byte : text) literal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        return literal + "'::bytea";
    }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

}  // namespace holdfast::tests
