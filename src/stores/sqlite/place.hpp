#pragma once

#include "base/file_system.hpp"
#include "holdfast/error.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

/// The database file and the files beside it, before SQLite sees them.
namespace holdfast::stores::sqlite {

using base::Sync;

struct Place {
    std::string folder;
    std::string database;

    /// `text` made absolute, with the links of its folders followed. Refused with `usage` if it names no file.
    [[nodiscard]] static Result<Place> of(const std::string& text);

    [[nodiscard]] std::string log() const { return database + "-wal"; }
    [[nodiscard]] std::string index() const { return database + "-shm"; }
    /// Used while the store is created; later the log replaces it.
    [[nodiscard]] std::string journal() const { return database + "-journal"; }
    [[nodiscard]] std::string gate() const { return database + "-gate"; }
    [[nodiscard]] std::string bells() const { return database + "-wake"; }
    [[nodiscard]] std::string presence() const { return database + "-presence"; }
};

/// Identifies a file: the path can later lead to another one.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;

    [[nodiscard]] bool operator==(const FileIdentity&) const = default;
};

/// The database file, unless it is absent or empty, which is a store that nobody created yet.
///
/// Refused with `store_unsafe` unless it is a plain file of ours that only we can write, with one name, in a folder
/// where nobody else can swap it. The same holds for the files beside it: SQLite trusts them, and the owner of the gate
/// can keep it locked. Never opens a file: closing the database again would drop the POSIX locks that SQLite holds on
/// it in this process.
[[nodiscard]] Result<std::optional<FileIdentity>> look_at(const Place& place);

/// The file that is there now, whatever it is.
[[nodiscard]] std::optional<FileIdentity> identity_of(const Place& place);

/// Whether the database can be changed here: it, and its folder unless the files of its log are there.
[[nodiscard]] bool can_write(const Place& place);
/// Whether the write-ahead log has content.
[[nodiscard]] bool has_log(const Place& place);

/// Whether the log and its index have names, which they must have while SQLite has them open.
[[nodiscard]] bool log_is_named(const Place& place);

/// Makes sure that the folder exists; new folders belong to us alone.
[[nodiscard]] Result<void> make_folder(const Place& place);

/// Makes sure that a file exists, empty and readable by us alone whatever the umask is.
[[nodiscard]] Result<void> make_database_file(const Place& place);

}  // namespace holdfast::stores::sqlite
