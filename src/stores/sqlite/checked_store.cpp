#include "stores/sqlite/checked_store.hpp"

#include "stores/sqlite/log_file.hpp"

#include <utility>

namespace holdfast::stores::sqlite {
namespace {

/// Four megabytes: few enough to be read quickly after a crash, many enough to share the checkpoint's syncs.
constexpr int checkpoint_pages = 2000;

/// Where nothing can be written and no log has been left, SQLite must not look for one: it could not make its index.
Result<Database> open_database(const Place& place) {
    if (can_write(place)) return Database::open(place.database, vfs_with_spared_syncs());
    return Database::open_to_read(place.database,
                                  has_log(place) ? Database::Others::may_write : Database::Others::cannot_write);
}

/// mmap is normally off, and reading the setting costs less than setting it.
Result<void> read_without_mapping(Database& database) {
    sqlite3_int64 mapped = -1;
    const int rc = sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_MMAP_SIZE, &mapped);
    if (rc == SQLITE_OK && mapped == 0) return {};
    return database.execute("PRAGMA mmap_size = 0");
}

/// Closing leaves the log and its index where they are. A short command would otherwise make and delete both, which
/// takes a sixth of its processor time.
void keep_log_file(Database& database) {
    int on = 1;
    sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

}  // namespace

CheckedStore::CheckedStore(Database database, const Bonds& bonds, const Identity& identity, const FileIdentity& file,
                           Sync sync)
    : database_(std::move(database)), tables_(database_, bonds), identity_(identity), file_(file), sync_(sync) {
    // Replaces SQLite's automatic checkpoint, which is part of a commit and is left unsynced where the commit is.
    sqlite3_wal_hook(
        database_.handle(),
        [](void* store, sqlite3*, const char*, int pages) {
            static_cast<CheckedStore*>(store)->log_pages_ = pages;
            return SQLITE_OK;
        },
        this);
}

CheckedStore::~CheckedStore() {
    // The last writer moves the log into the database and leaves it empty, so that the database file has everything.
    // Not before: overwriting the log in place saves a change of its size with each commit.
    if (can_write_) static_cast<void>(database_.execute("PRAGMA journal_size_limit = 0"));
}

Result<std::unique_ptr<CheckedStore>> CheckedStore::open(const Place& place, const Bonds& bonds, Sync sync) {
    const auto before = look_at(place);
    if (!before) return std::unexpected(before.error());
    if (!*before) return nullptr;
    auto database = open_database(place);
    if (!database) return std::unexpected(database.error());
    // A reader leaves no files that were not there.
    if (log_is_named(place)) keep_log_file(*database);
    // Views and triggers of a file from elsewhere must not call functions with effects.
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // The triggers repeat what our own statements check, and protect the tables from other programs. So they are
    // off here.
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    // If this turns out to be no store, its log stays as it was found: moving it needs the gate.
    const auto without = [&](auto result) -> Result<std::unique_ptr<CheckedStore>> {
        if (has_log(place)) sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        return result;
    };

    const auto identity = identify(*database);
    const auto after = look_at(place);
    if (!after) return without(std::unexpected(after.error()));
    // A process died while it created the store, and reading the file has just rolled that back.
    const bool never_was = identity && !*identity;
    if (never_was && !*after) return without(nullptr);
    // Reading a file that another process was still creating may have found it empty. A log that has lost its name
    // was perhaps never ours.
    if (*after != *before || (has_open_log(database->handle()) && !log_is_named(place)))
        return without(fail(Errc::store_unavailable, place.database + " was replaced just now; nothing was changed"));
    if (!identity) return without(std::unexpected(identity.error()));
    if (!*identity) return without(nullptr);

    const char* settings = sync == Sync::off ? "PRAGMA synchronous = OFF; PRAGMA cell_size_check = ON"
                                             : "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON";
    if (auto set = database->execute(settings); !set) return without(std::unexpected(set.error()));
    if (auto read = read_without_mapping(*database); !read) return without(std::unexpected(read.error()));
    return std::unique_ptr<CheckedStore>(new CheckedStore(std::move(*database), bonds, **identity, **before, sync));
}

Result<void> CheckedStore::create(const Place& place, const Clock& clock) {
    if (auto made = make_database_file(place); !made) return made;
    auto database = Database::open(place.database, vfs_with_spared_syncs());
    if (!database) return std::unexpected(database.error());
    const auto created = create_schema(*database, clock);
    if (!created) return std::unexpected(created.error());
    return {};
}

Result<void> CheckedStore::prepare_to_write() {
    if (can_write_) return {};
    // A connection that has read through the log already uses one.
    if (!has_open_log(database_.handle())) {
        const auto mode = database_.text("PRAGMA journal_mode = WAL");
        if (!mode) return std::unexpected(mode.error());
        if (*mode != "wal") return fail(Errc::store_unavailable, "another program keeps SQLite's write-ahead log off");
    }
    keep_log_file(database_);
    if (identity_.format != our_format)
        if (auto upgraded = upgrade_schema(database_); !upgraded) return upgraded;
    identity_.format = our_format;
    can_write_ = true;
    return {};
}

bool CheckedStore::is_read_only() const { return sqlite3_db_readonly(database_.handle(), "main") == 1; }

void CheckedStore::checkpoint_if_due() {
    if (log_pages_ < checkpoint_pages) return;
    // The commit is valid whatever happens here; if the log could not be moved, the next commit tries again.
    sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    log_pages_ = 0;
}

void CheckedStore::leave_log() { sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

}  // namespace holdfast::stores::sqlite
