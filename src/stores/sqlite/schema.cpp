#include "stores/sqlite/schema.hpp"

#include "base/crc32c.hpp"
#include "stores/sqlite/schema_text.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <fmt/format.h>

#include <set>
#include <string>

namespace holdfast::stores {

std::string_view sqlite_schema() { return sqlite::schema_text; }

}  // namespace holdfast::stores

namespace holdfast::stores::sqlite {
namespace {

constexpr std::int64_t our_application = 0x484C4446;  // "HLDF"

/// The CREATE statements of schema.sql as SQLite keeps them. An empty line ends a statement there.
std::set<std::string_view> expected_objects() {
    std::set<std::string_view> statements;
    for (std::string_view rest = schema_text; !rest.empty();) {
        std::string_view paragraph = rest.substr(0, rest.find("\n\n"));
        rest.remove_prefix(std::min(paragraph.size() + 2, rest.size()));
        if (!paragraph.starts_with("CREATE ")) continue;
        statements.insert(paragraph.substr(0, paragraph.rfind(';')));
    }
    return statements;
}

std::uint32_t checksum(std::string_view store_id, std::int64_t created_at) {
    const std::string row = fmt::format("{} {}", store_id, created_at);
    return base::crc32c({reinterpret_cast<const std::uint8_t*>(row.data()), row.size()});
}

Result<void> expect_our_objects(Database& database) {
    auto missing = expected_objects();
    Query objects(database, "SELECT name, sql FROM sqlite_schema");
    while (true) {
        const auto row = objects.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        // SQLite's own tables (statistics of ANALYZE, indexes of keys) change no content.
        if (objects.text().starts_with("sqlite_")) continue;
        if (missing.erase(objects.text()) != 1)
            return fail(Errc::record_corrupt, "the database holds a table, index or trigger that is not Holdfast's");
    }
    if (!missing.empty())
        return fail(Errc::record_corrupt, "a table, index or trigger of Holdfast is missing in the database");
    return {};
}

// Rows of holdfast_meta: what the store is, and since when it has had locks. Older versions read the first alone.
constexpr std::int64_t mark_row = 2;

Result<Identity> read_identity(Database& database) {
    Query query(database, "SELECT id, store_id, created_at, crc FROM holdfast_meta ORDER BY id");
    const auto row = query.step();
    if (!row) return std::unexpected(row.error());
    if (*row && query.number() == 1) {
        const std::string_view text = query.text();
        const std::int64_t created_at = query.number();
        const bool sound = query.number() == checksum(text, created_at) && query.intact();
        const auto store_id = StoreId::parse(text);
        if (sound && store_id) {
            const auto mark = query.step();
            if (!mark) return std::unexpected(mark.error());
            return Identity{*store_id, *mark && query.number() == mark_row};
        }
    }
    return fail(Errc::record_corrupt,
                "the store's identity cannot be read; the store stays blocked until it is repaired");
}

Error unknown_format(std::int64_t format) {
    return {Errc::format_unsupported,
            fmt::format("the store has format {}, and this Holdfast knows {}; {}", format, our_format,
                        format > our_format ? "use a newer one" : "make a new store")};
}

}  // namespace

Result<std::optional<Identity>> identify(Database& database) {
    // One moment for all of it: another process may be creating the store.
    auto snapshot = Transaction::snapshot(database);
    if (!snapshot) return std::unexpected(snapshot.error());
    const auto application = database.number("PRAGMA application_id");
    if (!application && application.error().code == Errc::record_corrupt)
        return fail(Errc::format_unsupported,
                    "the file is not a SQLite database, or is damaged: " + application.error().message);
    if (!application) return std::unexpected(application.error());
    const auto format = database.number("PRAGMA user_version");
    if (!format) return std::unexpected(format.error());
    if (*application == 0 && *format == 0) {
        const auto objects = database.number("SELECT count(*) FROM sqlite_schema");
        if (!objects) return std::unexpected(objects.error());
        if (*objects == 0) return std::nullopt;
    }
    if (*application != our_application)
        return fail(Errc::format_unsupported, "the file is a SQLite database of another program");
    if (*format != our_format && *format != old_format) return std::unexpected(unknown_format(*format));
    if (auto ours = expect_our_objects(database); !ours) return std::unexpected(ours.error());
    auto identity = read_identity(database);
    if (!identity) return std::unexpected(identity.error());
    identity->format = *format;
    return *identity;
}

Result<StoreId> create_schema(Database& database, const Clock& clock) {
    // Small pages, since a change writes several pages with little in each. Inside the transaction this would have no
    // effect.
    if (auto set = database.execute("PRAGMA page_size = 2048"); !set) return std::unexpected(set.error());
    // With a rollback journal, so that the file is complete or empty after any crash. The write-ahead log is turned on
    // afterwards.
    auto transaction = Transaction::immediate(database);
    if (!transaction) return std::unexpected(transaction.error());
    if (auto made = database.execute(std::string(schema_text).c_str()); !made) return std::unexpected(made.error());
    const StoreId store_id = StoreId::random();
    const std::int64_t now = clock.wall().time_since_epoch().count();
    Query insert(database, "INSERT INTO holdfast_meta (id, store_id, created_at, crc) VALUES (1, ?, ?, ?)");
    insert.bind(store_id.text()).bind(now).bind(std::int64_t{checksum(store_id.text(), now)});
    if (auto inserted = insert.run(); !inserted) return std::unexpected(inserted.error());
    if (auto done = transaction->commit(); !done)
        // Whether the tables are there or not, no lock was touched.
        return fail(Errc::store_unavailable, "the store could not be created: " + done.error().message);
    return store_id;
}

Result<void> upgrade_schema(Database& database) {
    auto transaction = Transaction::immediate(database);
    if (!transaction) return std::unexpected(transaction.error());
    const auto format = database.number("PRAGMA user_version");
    if (!format) return std::unexpected(format.error());
    if (*format == our_format) return {};
    if (*format != old_format) return std::unexpected(unknown_format(*format));
    if (auto set = database.execute(fmt::format("PRAGMA user_version = {}", our_format).c_str()); !set) return set;
    if (auto done = transaction->commit(); !done)
        // Whether it has the new format or not, no lock was touched.
        return fail(Errc::store_unavailable, "the store could not be upgraded: " + done.error().message);
    return {};
}

Result<void> mark_used(Database& database, const StoreId& store_id, Instant now) {
    const std::int64_t at = now.time_since_epoch().count();
    // Another process may have been the first.
    Query insert(database, "INSERT OR IGNORE INTO holdfast_meta (id, store_id, created_at, crc) VALUES (?, ?, ?, ?)");
    insert.bind(mark_row).bind(store_id.text()).bind(at).bind(std::int64_t{checksum(store_id.text(), at)});
    return insert.run();
}

}  // namespace holdfast::stores::sqlite
