#include "stores/mysql/schema.hpp"

#include "stores/mysql/mysql_store.hpp"
#include "stores/mysql/schema_text.hpp"

#include <fmt/format.h>

namespace holdfast::stores {

std::string_view mysql_schema() { return mysql::schema_text; }

}  // namespace holdfast::stores

namespace holdfast::stores::mysql {
namespace {

constexpr int attempts = 10;

}  // namespace

Sql identity_columns(const Clock& clock) {
    return Sql() << now_of(clock) << ", m.format, m.store_id, @@global.read_only";
}

Sql identity_query(const Clock& clock) {
    return Sql("SELECT ") << identity_columns(clock) << " FROM holdfast_meta m WHERE m.id = 1";
}

Result<std::optional<Identity>> identity_in(Answer& answer) {
    const auto row = answer.next();
    if (!row) return std::nullopt;
    return identity_in(*row);
}

Result<Identity> identity_in(const Row& row) {
    if (row.number(1) != our_format)
        return fail(Errc::format_unsupported,
                    fmt::format("the store has format {}, and this Holdfast knows {}", row.number(1), our_format));
    const auto store_id = StoreId::parse(row.text(2));
    if (!store_id)
        return fail(Errc::record_corrupt,
                    "the store's identity cannot be read; the store stays blocked until it is repaired");
    return Identity{Instant{std::chrono::milliseconds{row.number(0)}}, *store_id,
                    row.text(3) != "0" && row.text(3) != "OFF"};
}

Result<std::optional<Identity>> identify(Connection& connection, const Clock& clock, Deadline deadline) {
    auto answers = connection.look(identity_query(clock), deadline);
    if (!answers && answers.error().no_such_table()) return std::nullopt;
    if (!answers) return std::unexpected(error_of(answers.error(), "read the store's identity"));
    return identity_in(answers->front());
}

Result<Identity> create(Connection& connection, const Clock& clock, Deadline deadline) {
    // DDL commits by itself, so a crash can leave some of the tables. Each statement therefore passes over what
    // is there, and the row that makes a store of them comes last: one row, whoever comes first. Tables that hold
    // locks without it were a store; a new identity would hide what happened to it.
    Sql sql{Sql::Text(schema_text)};
    sql << "INSERT IGNORE INTO holdfast_meta (id, format, store_id, created_at) SELECT 1, " << our_format << ", ";
    sql.value(StoreId::random().text());
    sql << ", " << now_of(clock) << " FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM holdfast_locks); COMMIT";
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto made = connection.run(sql, deadline);
        // Creators can be in each other's way, also in ways that IF NOT EXISTS does not cover (1050, TiDB).
        if (!made && !made.error().conflict() && made.error().code != 1050)
            return std::unexpected(error_of(made.error(), "create the store"));
        if (!made) continue;
        auto identity = identify(connection, clock, deadline);
        if (!identity) return std::unexpected(identity.error());
        if (*identity) return **identity;
        return fail(
            Errc::record_corrupt,
            "the database holds locks of a store whose identity is gone; it stays blocked until it is repaired");
    }
    return fail(Errc::store_unavailable, "the store could not be created, because others kept changing the tables");
}

}  // namespace holdfast::stores::mysql
