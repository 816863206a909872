// Part of the command, not of the library: a program that uses SQLite itself decides about these settings, but the
// command has its own copy to itself.

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace {

// SQLite compiles its schema and statements in every process, in some two thousand small pieces of memory, and Debian
// builds it without the cache that it has for them. A command lives shortly, so here a piece is taken from the front of
// a large one, and kept for the next of its size when it is given back. Nothing is shared between threads: who gives a
// piece back keeps it.

/// Before each piece: how many bytes follow.
struct alignas(8) Head {
    std::size_t size;
};

constexpr std::size_t step = 16;
constexpr std::size_t largest = 2048;  ///< Larger ones are the C library's.
constexpr std::size_t supply = 32 * 1024;

/// A piece that was given back.
struct Idle {
    Idle* next;
};

thread_local std::array<Idle*, largest / step> idle{};
thread_local char* front = nullptr;
thread_local std::size_t left = 0;

/// With its head a piece fills whole steps.
std::size_t rounded(std::size_t size) { return (size + sizeof(Head) + step - 1) / step * step - sizeof(Head); }

Head* head_of(void* piece) { return static_cast<Head*>(piece) - 1; }

int size_of(void* piece) { return piece == nullptr ? 0 : static_cast<int>(head_of(piece)->size); }

void* with_head(void* memory, std::size_t size) {
    if (memory == nullptr) return nullptr;
    Head* const head = static_cast<Head*>(memory);
    head->size = size;
    return head + 1;
}

void* take(int asked) {
    const std::size_t size = rounded(static_cast<std::size_t>(asked));
    const std::size_t whole = size + sizeof(Head);
    if (whole >= largest) return with_head(std::malloc(whole), size);
    if (Idle*& piece = idle[whole / step]; piece != nullptr) return std::exchange(piece, piece->next);
    if (left < whole) {
        char* const more = static_cast<char*>(std::malloc(supply));
        if (more == nullptr) return nullptr;
        front = more;
        left = supply;
    }
    left -= whole;
    return with_head(std::exchange(front, front + whole), size);
}

void give_back(void* piece) {
    Head* const head = head_of(piece);
    const std::size_t whole = head->size + sizeof(Head);
    if (whole >= largest) return std::free(head);
    idle[whole / step] = new (piece) Idle{idle[whole / step]};
}

void* resize(void* piece, int asked) {
    const auto before = static_cast<std::size_t>(size_of(piece));
    const std::size_t size = rounded(static_cast<std::size_t>(asked));
    if (size == before) return piece;
    void* const other = take(asked);
    if (other == nullptr) return nullptr;
    std::memcpy(other, piece, std::min(before, size));
    give_back(piece);
    return other;
}

int round_up(int asked) { return static_cast<int>(rounded(static_cast<std::size_t>(asked))); }
int begin(void* /*nothing*/) { return SQLITE_OK; }
void end(void* /*nothing*/) {}

constexpr sqlite3_mem_methods memory{take, give_back, resize, size_of, round_up, begin, end, nullptr};

[[maybe_unused]] const int configured = [] {
    // Nobody asks how much memory SQLite uses, and counting takes a mutex with every allocation.
    const int uncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    return uncounted == SQLITE_OK ? sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) : uncounted;
}();

}  // namespace

// NOLINTBEGIN(*-reserved-identifier,*-naming): the names of ld's option `--wrap`, which has SQLite call these.
extern "C" int __real_ftruncate64(int file, off_t size);
extern "C" int __real_fchown(int file, uid_t owner, gid_t group);

// Who opens a store first cuts the log's index to three bytes, so that nobody takes it for a current one, and then lays
// out its pages anew, which takes longer than all that is read of the database. An index without its header says the
// same. Should SQLite do otherwise one day, this does what it says.
extern "C" int __wrap_ftruncate64(int file, off_t size) {
    constexpr off_t abandoned = 3;
    constexpr std::size_t header = 136;
    constexpr off_t part = 32 * 1024;
    struct stat found{};
    if (size != abandoned || fstat(file, &found) != 0 || found.st_size < part || found.st_size % part != 0)
        return __real_ftruncate64(file, size);
    constexpr std::array<char, header> nothing{};
    return pwrite(file, nothing.data(), header, 0) == ssize_t{header} ? 0 : __real_ftruncate64(file, size);
}

// As root SQLite gives the log and its index to the owner of the database whenever it opens them. Told what it knows,
// the kernel takes the file for changed all the same, and that goes to the disk with the next sync.
extern "C" int __wrap_fchown(int file, uid_t owner, gid_t group) {
    struct stat found{};
    const bool is_so = fstat(file, &found) == 0 && found.st_uid == owner && found.st_gid == group;
    return is_so ? 0 : __real_fchown(file, owner, group);
}
// NOLINTEND(*-reserved-identifier,*-naming)
