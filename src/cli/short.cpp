// The short program: the whole command in one static executable, because loading shared libraries takes a fifth of the
// time of a short command. Stores whose drivers are modules, and users whom only name services know, need them: then
// this process becomes the full program, the same command with shared libraries.

#include "base/os_error.hpp"
#include "cli/app.hpp"
#include "sql/sqlite/connection.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <sys/auxv.h>
#include <unistd.h>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

/// Where this program is. Absent without /proc, unless it was called by an absolute path: whatever is beside a relative
/// one depends on the working folder, where anybody may have put it.
std::optional<fs::path> this_program() {
    std::error_code failed;
    if (fs::path program = fs::read_symlink("/proc/self/exe", failed); !failed && program.is_absolute()) return program;
    // The kernel puts the path that was executed here.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number is all that the kernel gives.
    const auto* const called = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (called == nullptr || called[0] != '/') return std::nullopt;
    fs::path program = fs::canonical(called, failed);
    if (failed) return std::nullopt;
    return program;
}

Error exec_full_program(const std::vector<std::string>& args) {
    const auto ours = this_program();
    if (!ours)
        return {
            Errc::usage,
            "this store needs the program holdfast-full, which is installed beside holdfast, and without /proc that "
            "place is not known; call holdfast by its absolute path, or mount /proc"};
    // As built and as installed.
    const fs::path program = (ours->parent_path() / HOLDFAST_FULL_PROGRAM).lexically_normal();
    std::vector<char*> argv{program_invocation_name};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    return {Errc::usage,
            fmt::format("this store needs {}, which cannot be run: {}; \"make install\" puts it beside holdfast",
                        program.string(), base::os_message(errno))};
}

}  // namespace
}  // namespace holdfast

// SQLite could load extensions, which nobody asks it to do. `--wrap=dlopen` puts this in the place of what would.
extern "C" void* __wrap_dlopen(const char*, int) { return nullptr; }  // NOLINT(*-reserved-identifier,*-naming): ld's.

int main(int argc, char** argv) {
    // Nobody asks here how much it is.
    holdfast::sql::sqlite::stop_counting_memory();
    const int status = holdfast::cli::run(argc, argv, holdfast::exec_full_program);
    // Everything is written and closed. Destroying tables of options piece by piece would only take time.
    _exit(status);
}
