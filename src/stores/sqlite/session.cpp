#include "stores/sqlite/session.hpp"

#include "stores/sqlite/log_file.hpp"

#include <utility>

namespace holdfast::stores::sqlite {
namespace {

/// Four megabytes: few enough to be read quickly after a crash, many enough to share the checkpoint's syncs.
constexpr int checkpoint_pages = 2000;

/// Usually SQLite maps nothing, and asking is cheaper than telling.
Result<void> read_without_mapping(Database& database) {
    sqlite3_int64 mapped = -1;
    const int rc = sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_MMAP_SIZE, &mapped);
    if (rc == SQLITE_OK && mapped == 0) return {};
    return database.execute("PRAGMA mmap_size = 0");
}

}  // namespace

Session::Session(Database database, const Identity& identity, const FileIdentity& file, Sync sync)
    : database_(std::move(database)), tables_(database_), identity_(identity), file_(file), sync_(sync) {
    // Takes the place of SQLite's automatic checkpoint: that is part of a commit, and goes unsynced with one that is.
    sqlite3_wal_hook(
        database_.handle(),
        [](void* session, sqlite3*, const char*, int pages) {
            static_cast<Session*>(session)->log_pages_ = pages;
            return SQLITE_OK;
        },
        this);
}

Result<std::unique_ptr<Session>> Session::open(const Place& place, Sync sync) {
    const auto before = look_at(place);
    if (!before) return std::unexpected(before.error());
    if (!*before) return nullptr;
    auto database = Database::open(place.database);
    if (!database) return std::unexpected(database.error());
    // Views and triggers of a file from elsewhere must not call functions with effects.
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // Ours repeat what our own statements say, and are for those of others.
    sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    // What does not become a session leaves the log as it was found: moving it needs the gate.
    const auto without = [&](auto result) -> Result<std::unique_ptr<Session>> {
        if (has_log(place)) sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        return result;
    };

    const auto identity = identify(*database);
    const auto after = look_at(place);
    if (!after) return without(std::unexpected(after.error()));
    // Somebody died while creating the store, and reading it has just rolled that back.
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
    return std::unique_ptr<Session>(new Session(std::move(*database), **identity, **before, sync));
}

Result<void> Session::create(const Place& place, const Clock& clock) {
    if (auto made = make_database_file(place); !made) return made;
    auto database = Database::open(place.database);
    if (!database) return std::unexpected(database.error());
    const auto created = create_schema(*database, clock);
    if (!created) return std::unexpected(created.error());
    return {};
}

Result<void> Session::prepare_to_write() {
    if (can_write_) return {};
    // Who has read through the log need not be told to use one.
    if (!has_open_log(database_.handle())) {
        const auto mode = database_.text("PRAGMA journal_mode = WAL");
        if (!mode) return std::unexpected(mode.error());
        if (*mode != "wal") return fail(Errc::store_unavailable, "another program keeps SQLite's write-ahead log off");
    }
    can_write_ = true;
    return {};
}

void Session::checkpoint_if_due() {
    if (log_pages_ < checkpoint_pages) return;
    // The commit stands whatever happens here; a log that could not be moved is tried again with the next.
    sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    log_pages_ = 0;
}

void Session::leave_log() { sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

}  // namespace holdfast::stores::sqlite
