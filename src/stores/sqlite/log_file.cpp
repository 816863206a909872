#include "stores/sqlite/log_file.hpp"

#include "stores/sqlite/log_name.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace holdfast::stores::sqlite {
namespace {

constexpr int header_size = 32;
using Header = std::array<char, header_size>;
constexpr int frame_header_size = 24;
/// Shorter than a header, so that SQLite sees no log. Not 0: ext4 takes what is cut to nothing and written anew for
/// somebody's careless way of replacing a file, and writes it to the disk when it is closed.
constexpr int emptied_size = 1;
constexpr int page_size = 4096;

/// What SQLite takes for a file. The real one follows it in the same memory.
struct LogFile {
    sqlite3_file base;
    Header header;        ///< As we wrote it; the salt in it tells one log from another.
    sqlite3_int64 end;    ///< Behind the last byte that was written without a gap, by us alone; 0: others wrote, too.
    bool is_only_header;  ///< Of a log in a file that was empty.
    bool is_dirty;        ///< Written and not synced.
    const char* path;     ///< SQLite's, which outlives the file.
    bool is_to_stay;      ///< It was there before us, or we wrote into it.
    bool is_named;        ///< See log_name.hpp.
    sqlite3_file* database;
    bool leaves_to_the_next;                   ///< See UnsyncedCommits.
    sqlite3_int64 next;                        ///< Where the next frame belongs: behind the last one that we wrote.
    sqlite3_int64 lone;                        ///< Behind a header that was written by itself just now; or 0.
    std::array<char, frame_header_size> kept;  ///< Of a frame at `next`, which is written with the page that follows.
    bool is_kept;
    std::vector<char>* gathered;  ///< What is written next, in one write; see FramesAtOnce. Null: nothing is gathered.
    sqlite3_int64 gathered_at;
};

/// SQLite deletes a log by its path, right after it has closed it: this one is not to be deleted.
thread_local const char* closed_to_stay = nullptr;

LogFile& log(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(&log(file) + 1); }
const sqlite3_io_methods& methods(sqlite3_file* file) { return *real(file)->pMethods; }

sqlite3_vfs& usual_vfs() {
    static sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
    if (usual == nullptr) std::abort();  // SQLite without any files is not what this was built for.
    return *usual;
}

/// A database's file is the usual one, and behind it, where a log is longer, is the place for this.
LogFile*& log_of_file(sqlite3_file* database) {
    return *reinterpret_cast<LogFile**>(reinterpret_cast<char*>(database) + usual_vfs().szOsFile);
}

int write_now(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
    LogFile& self = log(file);
    // Before `next` lies what is written once more, or a log that somebody has begun anew: there pages follow headers.
    if (at == 0 || at >= self.next || at == self.lone) self.next = at + size;
    self.lone = size == frame_header_size ? at + size : 0;
    const int rc = methods(file).xWrite(real(file), from, size, at);
    // SQLite knows a full disk, and takes a quota for a broken one. Both cut the frames short in the same way.
    return rc == SQLITE_IOERR_WRITE && errno == EDQUOT ? SQLITE_FULL : rc;
}

/// SQLite has a page follow each header that is kept, so this finds one only if that should change.
int write_kept(sqlite3_file* file) {
    LogFile& self = log(file);
    if (!std::exchange(self.is_kept, false)) return SQLITE_OK;
    return write_now(file, self.kept.data(), frame_header_size, self.next);
}

int write_gathered(sqlite3_file* file) {
    LogFile& self = log(file);
    if (self.gathered == nullptr || self.gathered->empty()) return SQLITE_OK;
    const int rc = write_now(file, self.gathered->data(), static_cast<int>(self.gathered->size()), self.gathered_at);
    self.gathered->clear();
    return rc;
}

/// Nobody may look at the file, or rely on it, before this.
int write_all(sqlite3_file* file) {
    const int rc = write_kept(file);
    return rc == SQLITE_OK ? write_gathered(file) : rc;
}

int close(sqlite3_file* file) {
    if (log(file).database != nullptr) log_of_file(log(file).database) = nullptr;
    closed_to_stay = log(file).is_to_stay ? log(file).path : nullptr;
    return methods(file).xClose(real(file));
}
int read(sqlite3_file* file, void* to, int size, sqlite3_int64 from) {
    if (const int rc = write_all(file); rc != SQLITE_OK) return rc;
    return methods(file).xRead(real(file), to, size, from);
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
    log(file).end = 0;
    log(file).is_dirty = true;
    if (const int rc = write_all(file); rc != SQLITE_OK) return rc;
    return methods(file).xTruncate(real(file), size);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
    if (const int rc = write_all(file); rc != SQLITE_OK) return rc;
    return methods(file).xFileSize(real(file), size);
}

/// A frame is a header and a page, which SQLite writes one after the other. Here they are one write.
int write_frames(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
    LogFile& self = log(file);
    if (self.is_kept && at == self.next + frame_header_size && size <= page_size) {
        std::array<char, frame_header_size + page_size> frame;
        std::ranges::copy(self.kept, frame.begin());
        std::memcpy(frame.data() + frame_header_size, from, static_cast<std::size_t>(size));
        self.is_kept = false;
        return write_now(file, frame.data(), frame_header_size + size, self.next);
    }
    if (const int rc = write_kept(file); rc != SQLITE_OK) return rc;
    // Before `next` it may be the header of an older frame, which SQLite writes again without its page.
    if (size != frame_header_size || at < self.next) return write_now(file, from, size, at);
    std::memcpy(self.kept.data(), from, frame_header_size);
    self.next = at;
    self.is_kept = true;
    return SQLITE_OK;
}

int gather(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
    // SQLite's own files take less than 128 KiB at once, and take more for a full disk.
    constexpr std::size_t most = 65'536;
    LogFile& self = log(file);
    if (const int rc = write_kept(file); rc != SQLITE_OK) return rc;
    std::vector<char>& bytes = *self.gathered;
    if (at != self.gathered_at + static_cast<sqlite3_int64>(bytes.size()) || bytes.size() >= most) {
        if (const int rc = write_gathered(file); rc != SQLITE_OK) return rc;
    }
    if (bytes.empty()) self.gathered_at = at;
    const char* begin = static_cast<const char*>(from);
    bytes.insert(bytes.end(), begin, begin + size);
    return SQLITE_OK;
}

int write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
    LogFile& self = log(file);
    self.is_to_stay = true;
    self.is_only_header = false;
    if (at == 0 && size == header_size) {
        sqlite3_int64 before = -1;
        self.is_only_header = file_size(file, &before) == SQLITE_OK && before <= emptied_size;
        std::memcpy(self.header.data(), from, header_size);
        self.end = header_size;
    } else {
        // SQLite may write a frame again, or its checksum, but a gap belongs to somebody else.
        self.end = at <= self.end ? std::max(self.end, at + size) : 0;
    }
    self.is_dirty = true;
    return self.gathered == nullptr ? write_frames(file, from, size, at) : gather(file, from, size, at);
}

/// Whether all that is in the file was written by us, and nobody has begun another log in it.
bool is_ours_alone(sqlite3_file* file) {
    Header found{};
    sqlite3_int64 size = -1;
    return log(file).end >= header_size && file_size(file, &size) == SQLITE_OK && size == log(file).end &&
           read(file, found.data(), header_size, 0) == SQLITE_OK && found == log(file).header;
}

int sync(sqlite3_file* file, int flags) {
    LogFile& self = log(file);
    if (const int rc = write_all(file); rc != SQLITE_OK) return rc;
    if (self.is_only_header || self.leaves_to_the_next) return SQLITE_OK;
    if (!self.is_dirty && is_ours_alone(file)) return SQLITE_OK;
    const int rc = methods(file).xSync(real(file), flags);
    // After a failed one nobody knows what the disk has.
    self.is_dirty = rc != SQLITE_OK;
    if (rc != SQLITE_OK || self.is_named) return rc;
    self.is_named = make_name_durable(self.path);
    return self.is_named ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
}

int lock(sqlite3_file* file, int level) { return methods(file).xLock(real(file), level); }
int unlock(sqlite3_file* file, int level) { return methods(file).xUnlock(real(file), level); }
int check_reserved_lock(sqlite3_file* file, int* is_locked) {
    return methods(file).xCheckReservedLock(real(file), is_locked);
}
int file_control(sqlite3_file* file, int what, void* argument) {
    return methods(file).xFileControl(real(file), what, argument);
}
int sector_size(sqlite3_file* file) { return methods(file).xSectorSize(real(file)); }
int device_characteristics(sqlite3_file* file) { return methods(file).xDeviceCharacteristics(real(file)); }

constexpr sqlite3_io_methods log_methods{1,
                                         close,
                                         read,
                                         write,
                                         truncate,
                                         sync,
                                         file_size,
                                         lock,
                                         unlock,
                                         check_reserved_lock,
                                         file_control,
                                         sector_size,
                                         device_characteristics,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr};

/// The methods of a database's file but for one. Null for a file with others than the first had.
const sqlite3_io_methods* database_methods(const sqlite3_io_methods* usual) {
    static const sqlite3_io_methods* const first = usual;
    static const sqlite3_io_methods ours = [] {
        sqlite3_io_methods changed = *first;
        // The log's index stays or goes with the log.
        changed.xShmUnmap = [](sqlite3_file* file, int is_to_go) {
            const LogFile* log = log_of_file(file);
            return first->xShmUnmap(file, log != nullptr && log->is_to_stay ? 0 : is_to_go);
        };
        return changed;
    }();
    return usual == first && first->iVersion >= 2 ? &ours : nullptr;
}

int open_database(const char* path, sqlite3_file* file, int flags, int* flags_out) {
    const int rc = usual_vfs().xOpen(&usual_vfs(), path, file, flags, flags_out);
    if (rc != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) return rc;
    log_of_file(file) = nullptr;
    if (const auto* ours = database_methods(file->pMethods)) file->pMethods = ours;
    return rc;
}

/// Opens a log, which SQLite has to make first if need be. Opened as one that is there, SQLite leaves its folder to us.
int open_log(const char* path, sqlite3_file* file, int flags, int* flags_out) {
    sqlite3_vfs& usual = usual_vfs();
    if ((flags & SQLITE_OPEN_CREATE) != 0 && !log(file).is_to_stay) {
        const int rc = usual.xOpen(&usual, path, real(file), flags, flags_out);
        if (rc != SQLITE_OK) return rc;
        real(file)->pMethods->xClose(real(file));
        real(file)->pMethods = nullptr;
    }
    return usual.xOpen(&usual, path, real(file), flags & ~SQLITE_OPEN_CREATE, flags_out);
}

int open_file(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
    if ((flags & SQLITE_OPEN_WAL) == 0) return open_database(path, file, flags, flags_out);
    log(file) = {};
    log(file).path = path;
    real(file)->pMethods = nullptr;
    const auto name = look_at_name(path);
    log(file).is_to_stay = name != LogName::absent;
    log(file).is_named = name == LogName::durable;
    const int rc = open_log(path, file, flags, flags_out);
    // SQLite closes what has methods, also after an error.
    if (real(file)->pMethods == nullptr) return rc;
    file->pMethods = &log_methods;
    log(file).database = sqlite3_database_file_object(path);
    log_of_file(log(file).database) = &log(file);
    return rc;
}

/// A log that is to stay is emptied instead. SQLite has moved it into the database, synced that, and still keeps
/// everybody else out.
int delete_file(sqlite3_vfs* /*vfs*/, const char* path, int sync_folder) {
    if (std::exchange(closed_to_stay, nullptr) != path || path == nullptr)
        return usual_vfs().xDelete(&usual_vfs(), path, sync_folder);
    struct stat found{};
    if (lstat(path, &found) != 0 || found.st_size <= emptied_size) return SQLITE_OK;
    return ::truncate(path, emptied_size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

LogFile* log_of(sqlite3* connection) {
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&file)) != SQLITE_OK)
        return nullptr;
    return file != nullptr && file->pMethods == &log_methods ? &log(file) : nullptr;
}

}  // namespace

FramesAtOnce::FramesAtOnce(sqlite3* connection, std::vector<char>& memory) : connection_(connection) {
    memory.clear();
    if (LogFile* file = log_of(connection_)) file->gathered = &memory;
}

FramesAtOnce::~FramesAtOnce() {
    if (LogFile* file = log_of(connection_)) file->gathered = nullptr;
}

const char* vfs_with_spared_syncs() {
    static sqlite3_vfs ours = [] {
        sqlite3_vfs vfs = usual_vfs();
        vfs.zName = "holdfast";
        vfs.szOsFile += static_cast<int>(sizeof(LogFile));
        vfs.xOpen = open_file;
        vfs.xDelete = delete_file;
        vfs.pNext = nullptr;
        return vfs;
    }();
    static const int registered = sqlite3_vfs_register(&ours, 0);
    return registered == SQLITE_OK ? ours.zName : nullptr;
}

bool has_open_log(sqlite3* connection) { return log_of(connection) != nullptr; }

UnsyncedCommits::UnsyncedCommits(sqlite3* connection) : connection_(connection) {
    if (LogFile* file = log_of(connection_)) file->leaves_to_the_next = true;
}

UnsyncedCommits::~UnsyncedCommits() {
    if (LogFile* file = log_of(connection_)) file->leaves_to_the_next = false;
}

}  // namespace holdfast::stores::sqlite
