#include "stores/sqlite/log_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace holdfast::stores::sqlite {
namespace {

constexpr int header_size = 32;
using Header = std::array<char, header_size>;
constexpr int frame_header_size = 24;
constexpr int page_size = 4096;

/// SQLite's handle of a file. The handle of the real file follows it in the same memory.
struct LogFile {
    sqlite3_file base;
    Header header;            ///< As we wrote it; its salt identifies the log.
    sqlite3_int64 end;        ///< Up to here the log was written by us alone and without a gap; 0: others wrote, too.
    bool is_only_header;      ///< The header of a log in a file that had no frames.
    bool is_dirty;            ///< Written and not synced.
    bool leaves_to_the_next;  ///< See UnsyncedCommits.
    sqlite3_int64 next;       ///< The offset of the next frame: after the last one that we wrote.
    sqlite3_int64 lone;       ///< The offset after a header that was written by itself just now; or 0.
    std::array<char, frame_header_size>
        kept;  ///< The header of a frame at `next`, which is written with the page that follows.
    bool is_kept;
    std::vector<char>*
        gathered;  ///< The frames for the next write; see FramesAtOnce. Null: frames are written one by one.
    sqlite3_int64 gathered_at;
};

LogFile& log(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(&log(file) + 1); }
const sqlite3_io_methods& methods(sqlite3_file* file) { return *real(file)->pMethods; }

sqlite3_vfs& usual_vfs() {
    static sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
    if (usual == nullptr) std::abort();  // SQLite without any files is not what this was built for.
    return *usual;
}

int write_now(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
    LogFile& self = log(file);
    // An offset before `next` is an older frame that is written again, or a log that another process has begun anew:
    // there pages follow headers.
    if (at == 0 || at >= self.next || at == self.lone) self.next = at + size;
    self.lone = size == frame_header_size ? at + size : 0;
    const int rc = methods(file).xWrite(real(file), from, size, at);
    // SQLite takes an exceeded quota for a broken disk. Both cut the frames short in the same way, so report a full
    // disk.
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

/// Must be called before anybody reads the file or relies on it.
int write_all(sqlite3_file* file) {
    const int rc = write_kept(file);
    return rc == SQLITE_OK ? write_gathered(file) : rc;
}

int close(sqlite3_file* file) { return methods(file).xClose(real(file)); }
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
    // SQLite's own files accept less than 128 KiB at once, and report a full disk for more.
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
    self.is_only_header = false;
    if (at == 0 && size == header_size) {
        sqlite3_int64 before = -1;
        self.is_only_header = file_size(file, &before) == SQLITE_OK && before < header_size;
        std::memcpy(self.header.data(), from, header_size);
        self.end = header_size;
    } else {
        // SQLite may write a frame again, or its checksum, but a gap was written by another process.
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
    // After a failed sync the content of the disk is not known.
    self.is_dirty = rc != SQLITE_OK;
    return rc;
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

int open_file(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
    sqlite3_vfs& usual = usual_vfs();
    if ((flags & SQLITE_OPEN_WAL) == 0) return usual.xOpen(&usual, path, file, flags, flags_out);
    log(file) = {};
    real(file)->pMethods = nullptr;
    const int rc = usual.xOpen(&usual, path, real(file), flags, flags_out);
    // SQLite closes a file that has methods, also after an error.
    if (real(file)->pMethods != nullptr) file->pMethods = &log_methods;
    return rc;
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
