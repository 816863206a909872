#pragma once

/// Whether a power cut can take the name of SQLite's log away, and with it every change in the log.
///
/// The entry in the folder becomes durable with a sync of the folder, which costs as much as that of the log. Once is
/// enough: a log is emptied and not deleted when a writer closes the store, and the file itself says that its name was
/// synced, in an extended attribute that names the folder and the file. So a copy or a moved file says nothing, nor
/// does a file on a file system without such attributes: then the folder is synced once in each process, as SQLite does
/// it.
namespace holdfast::stores::sqlite {

enum class LogName { absent, present, durable };

[[nodiscard]] LogName look_at_name(const char* path);

/// Syncs the folder, and makes the file say so. False: the folder could not be synced.
[[nodiscard]] bool make_name_durable(const char* path);

}  // namespace holdfast::stores::sqlite
