#pragma once

#include <sqlite3.h>

#include <vector>

/// SQLite's write-ahead log without the syncs that protect nothing.
///
/// With `synchronous=FULL` SQLite syncs the log more often than a store of ours needs it:
/// - A log's header before its first frame. That keeps frames of an older log in the same file from being read as newer
///   ones. In a file that was empty there are none, and the commit syncs header and frames together.
/// - The log before it is moved into the database, even if every commit in it has been synced.
/// - A commit that changed nothing but places in the queue. Its waiters do not outlive a power cut either. The next
///   commit that counts syncs the same file.
///
/// It also writes each frame of the log at once, where SQLite writes its header and its page one after the other, and
/// all frames of a commit that is synced.
namespace holdfast::stores::sqlite {

/// The name under which SQLite finds these files: for `sqlite3_open_v2`.
[[nodiscard]] const char* vfs_with_spared_syncs();

/// Whether the connection reads, and would write, through a log.
[[nodiscard]] bool has_open_log(sqlite3* connection);

/// While it lives, commits of this connection are not synced. The next synced commit includes them.
class UnsyncedCommits {
public:
    explicit UnsyncedCommits(sqlite3* connection);
    UnsyncedCommits(const UnsyncedCommits&) = delete;
    UnsyncedCommits& operator=(const UnsyncedCommits&) = delete;
    ~UnsyncedCommits();

private:
    sqlite3* connection_;
};

/// While it lives, a commit of this connection writes its frames to the log in one write, at its sync. So the commit
/// must have a sync: with `synchronous=OFF` SQLite would announce frames that are not there yet.
class FramesAtOnce {
public:
    /// `memory` must outlive this.
    FramesAtOnce(sqlite3* connection, std::vector<char>& memory);
    FramesAtOnce(const FramesAtOnce&) = delete;
    FramesAtOnce& operator=(const FramesAtOnce&) = delete;
    ~FramesAtOnce();

private:
    sqlite3* connection_;
};

}  // namespace holdfast::stores::sqlite
