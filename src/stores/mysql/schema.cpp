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

constexpr Sql::Text add_mark = "ALTER TABLE holdfast_meta ADD COLUMN used TINYINT NOT NULL DEFAULT 0";

/// The columns of `identity_columns` except the last.
Sql common_columns(const Clock& clock) {
    return Sql() << now_of(clock) << ", m.format, m.store_id, @@global.read_only";
}

/// Reads the identity again, since other clients may have created or upgraded the store at the same time.
Result<Identity> identify_again(Connection& connection, const Clock& clock, Deadline deadline) {
    auto identity = identify(connection, clock, deadline);
    if (!identity) return std::unexpected(identity.error());
    if (*identity) return **identity;
    return fail(Errc::record_corrupt,
                "the database holds locks of a store whose identity is gone; it stays blocked until it is repaired");
}

/// Upgrades `format_without_new_events` to our format. Waits for no other transaction, since what an older program
/// still writes is valid in both formats.
std::expected<void, Failure> renumber(Connection& connection, Deadline deadline) {
    Sql sql("UPDATE holdfast_meta SET format = ");
    sql << our_format << " WHERE id = 1 AND format = " << format_without_new_events << "; COMMIT";
    if (const auto done = connection.run(sql, deadline); !done) return std::unexpected(done.error());
    return {};
}

/// The same for a format without the mark. DDL commits by itself, so this is no transaction: each step may be repeated,
/// and the last step sets the new format.
std::expected<void, Failure> add_mark_and_renumber(Connection& connection, Deadline deadline) {
    // Older programs ignore the column; and this step shows whether the user has the rights for the rest.
    if (const auto added = connection.run(Sql(add_mark), deadline); !added && !added.error().duplicate_column())
        return std::unexpected(added.error());
    // From now on older programs refuse the store.
    Sql sql("UPDATE holdfast_meta SET format = ");
    sql << format_in_between << " WHERE id = 1 AND format = " << format_without_mark << "; COMMIT";
    if (const auto done = connection.run(sql, deadline); !done) return std::unexpected(done.error());
    // Transactions under way have read the table, so this waits for them. If the comment is there already, another
    // client has waited.
    if (const auto done = connection.run(Sql("ALTER TABLE holdfast_meta COMMENT = 'format 2'"), deadline); !done)
        return std::unexpected(done.error());
    sql =
        Sql("UPDATE holdfast_meta SET used = EXISTS (SELECT 1 FROM holdfast_locks WHERE seq > 0) OR "
            "EXISTS (SELECT 1 FROM holdfast_audit), format = ");
    sql << our_format << " WHERE id = 1 AND format = " << format_in_between << "; COMMIT";
    if (const auto done = connection.run(sql, deadline); !done) return std::unexpected(done.error());
    return {};
}

}  // namespace

Sql identity_columns(const Clock& clock) { return common_columns(clock) << ", m.used"; }

Sql identity_query(const Clock& clock) {
    // All columns, whether `used` is among them or not.
    return Sql("SELECT ") << common_columns(clock) << ", m.* FROM holdfast_meta m WHERE m.id = 1";
}

Result<std::optional<Identity>> identity_in(Answer& answer) {
    const auto row = answer.next();
    if (!row) return std::nullopt;
    return identity_in(*row, answer.column("used"));
}

Result<Identity> identity_in(const Row& row, std::optional<std::size_t> used) {
    const std::int64_t format = row.number(1);
    if (format < format_in_between || format > our_format)
        return fail(
            Errc::format_unsupported,
            fmt::format("the store has format {}, and this Holdfast knows {}; use a newer one", format, our_format));
    const auto store_id = StoreId::parse(row.text(2));
    if (!store_id)
        return fail(Errc::record_corrupt,
                    "the store's identity cannot be read; the store stays blocked until it is repaired");
    return Identity{Instant{std::chrono::milliseconds{row.number(0)}}, *store_id,
                    row.text(3) != "0" && row.text(3) != "OFF", format,
                    format >= format_without_new_events && used && row.number(*used) != 0};
}

Result<std::optional<Identity>> identify(Connection& connection, const Clock& clock, Deadline deadline) {
    auto answers = connection.run(identity_query(clock) << "; COMMIT", deadline);
    if (!answers && answers.error().no_such_table()) return std::nullopt;
    if (!answers) return std::unexpected(error_of(answers.error(), "read the store's identity"));
    return identity_in(answers->front());
}

Result<Identity> create(Connection& connection, const Clock& clock, Deadline deadline) {
    // DDL commits by itself, so a crash can leave some of the tables. Each statement therefore passes over what is
    // there, and the row that makes them a store comes last: one row, also with several creators. Tables that have
    // locks and lack this row were a store; a new identity would hide what happened to it.
    Sql sql{Sql::Text(schema_text)};
    sql << "INSERT IGNORE INTO holdfast_meta (id, format, store_id, created_at, used) SELECT 1, " << our_format << ", ";
    sql.value(StoreId::random().text());
    sql << ", " << now_of(clock) << ", 0 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM holdfast_locks); COMMIT";
    for (int attempt = 0; attempt < attempts; ++attempt) {
        auto made = connection.run(sql, deadline);
        // An older program has begun to create it.
        if (!made && made.error().no_such_column()) {
            made = connection.run(Sql(add_mark), deadline);
            if (made || made.error().duplicate_column()) continue;
        }
        // Creators can be in each other's way, also in ways that IF NOT EXISTS does not cover (1050, TiDB).
        if (!made && !made.error().conflict() && made.error().code != 1050)
            return std::unexpected(error_of(made.error(), "create the store"));
        if (!made) continue;
        return identify_again(connection, clock, deadline);
    }
    return fail(Errc::store_unavailable, "the store could not be created, because others kept changing the tables");
}

Result<Identity> upgrade(Connection& connection, const Clock& clock, Deadline deadline) {
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto before = identify_again(connection, clock, deadline);
        if (!before || !before->is_old()) return before;
        const auto done =
            before->has_mark() ? renumber(connection, deadline) : add_mark_and_renumber(connection, deadline);
        if (done) return identify_again(connection, clock, deadline);
        if (done.error().conflict()) continue;
        Error error = error_of(done.error(), fmt::format("upgrade the store to format {}", our_format));
        if (error.code == Errc::denied)
            error.message +=
                "; let a user who may ALTER, INSERT and UPDATE holdfast_meta run `holdfast init` of this version first";
        return std::unexpected(std::move(error));
    }
    return fail(Errc::store_unavailable,
                fmt::format("the store could not be upgraded to format {}, because others kept using the table "
                            "holdfast_meta; no lock was changed, try again",
                            our_format));
}

}  // namespace holdfast::stores::mysql
