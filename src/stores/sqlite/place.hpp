#pragma once

#include "holdfast/store.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

/// The database file and the files beside it, before SQLite sees them.
namespace holdfast::stores::sqlite {

struct Place {
    std::string folder;
    std::string database;

    /// `text` made absolute, with the links of its folders followed. Refused with `usage` if it names no file.
    [[nodiscard]] static Result<Place> of(const std::string& text);

    [[nodiscard]] std::string log() const { return database + "-wal"; }
    [[nodiscard]] std::string gate() const { return database + "-gate"; }
    [[nodiscard]] std::string bells() const { return database + "-wake"; }
};

/// Which file is there: a path can come to mean another one.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;

    [[nodiscard]] bool operator==(const FileIdentity&) const = default;
};

/// The database file, unless it is absent or empty, which is a store that nobody created yet.
///
/// `store_unsafe` for what is not a plain file of ours that only we can write, or lies where anybody can
/// swap it. Never opens the file: closing it again would drop the POSIX locks that SQLite holds on it in
/// this process.
[[nodiscard]] Result<std::optional<FileIdentity>> look_at(const Place& place);

/// The file that is there now, whatever it is.
[[nodiscard]] std::optional<FileIdentity> identity_of(const Place& place);

/// Whether the write-ahead log has content.
[[nodiscard]] bool has_log(const Place& place);

/// Makes sure that the folder exists; new folders belong to us alone.
[[nodiscard]] Result<void> make_folder(const Place& place);

/// Makes sure that a file exists, empty and readable by us alone whatever the umask is.
[[nodiscard]] Result<void> make_database_file(const Place& place);

/// What can be promised where `place` is.
struct Standing {
    std::string file_system;
    Grade grade = Grade::a;
    std::vector<std::string> reasons;
};

enum class Sync { full, off };

[[nodiscard]] Standing standing_of(const Place& place, Sync sync);

}  // namespace holdfast::stores::sqlite
