// Part of the command, not of the library: a program that uses SQLite itself decides about these settings, but the
// command has its own copy to itself.

#include <sqlite3.h>

namespace {

// Nobody asks how much memory SQLite uses, and counting takes a mutex with every allocation.
[[maybe_unused]] const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);

}  // namespace
