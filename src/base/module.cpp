#include "base/module.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace holdfast::base {
namespace {

namespace fs = std::filesystem;

/// True if nobody but this user and root can change what is at `path`.
bool is_ours_alone(const fs::path& path) {
    struct stat found{};
    if (stat(path.c_str(), &found) != 0) return false;
    // A group with the number of its user is that user's alone; that is how Linux distributions number them.
    const bool group_writes = (found.st_mode & S_IWGRP) != 0 && found.st_gid != found.st_uid;
    return (found.st_uid == geteuid() || found.st_uid == 0) && (found.st_mode & S_IWOTH) == 0 && !group_writes;
}

/// The environment's choice, if there is one. It may have come with a session of somebody with fewer rights, through
/// sudo for example, so it counts only where they could not have put anything.
Result<std::optional<fs::path>> chosen_folder() {
    const char* chosen = secure_getenv("HOLDFAST_MODULES");
    if (chosen == nullptr || *chosen == '\0') return std::nullopt;
    const fs::path folder(chosen);
    if (!folder.is_absolute()) return fail(Errc::config, "HOLDFAST_MODULES must name a folder from the root: /…");
    if (std::error_code none; fs::exists(folder, none) && !is_ours_alone(folder))
        return fail(Errc::config,
                    fmt::format("HOLDFAST_MODULES names {}, which others can change; it must belong to you or root, "
                                "and be written by nobody else",
                                folder.string()));
    return folder;
}

/// Where modules can be beside that: beside the program, as built and as installed, and where the library was
/// installed.
std::vector<fs::path> usual_folders() {
    std::vector<fs::path> found;
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    if (!none) found.push_back(program.parent_path() / HOLDFAST_MODULES_FROM_PROGRAM);
    found.emplace_back(HOLDFAST_MODULES_INSTALLED);
    return found;
}

}  // namespace

Error module_of_another_version(std::string_view file) {
    return {Errc::store_unavailable, fmt::format("{} belongs to another version of holdfast than this one", file)};
}

Result<void*> load_module(std::string_view kind, std::string_view name, const char* entry) {
    const std::string file = fmt::format("holdfast-{}-{}.so", kind, name);
    const auto chosen = chosen_folder();
    if (!chosen) return std::unexpected(chosen.error());
    std::vector<fs::path> folders = usual_folders();
    if (*chosen) folders.insert(folders.begin(), **chosen);
    for (const fs::path& folder : folders) {
        const fs::path path = folder / file;
        std::error_code none;
        if (!fs::exists(path, none)) continue;
        if (folder == *chosen && !is_ours_alone(path))
            return fail(Errc::config, fmt::format("{} can be changed by others, so it is not loaded", path.string()));
        // Never unloaded: what it made may outlive any scope, and drivers do not like to go.
        void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (loaded == nullptr)
            return fail(Errc::store_unavailable, fmt::format("the {} {} cannot be loaded: {}", name, kind, dlerror()));
        if (void* const found = dlsym(loaded, entry)) return found;
        return std::unexpected(module_of_another_version(file));
    }
    return fail(Errc::usage, fmt::format("this build has no {} {}: {} is not installed", name, kind, file));
}

}  // namespace holdfast::base
