#include "base/module.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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
    fs::path folder(chosen);
    if (!folder.is_absolute()) return fail(Errc::config, "HOLDFAST_MODULES must name a folder from the root: /…");
    if (std::error_code none; fs::exists(folder, none) && !is_ours_alone(folder))
        return fail(Errc::config,
                    fmt::format("HOLDFAST_MODULES names {}, which others can change; it must belong to you or root, "
                                "and be written by nobody else",
                                folder.string()));
    return folder;
}

/// Where the dynamic linker looks for the libraries of the object that this code is in, by its RUNPATH: of
/// libholdfast.so, which names the folder beside it, or of the program that the library was linked into.
std::vector<fs::path> library_path() {
    Dl_info object{};
    void* handle = nullptr;
    if (dladdr(reinterpret_cast<const void*>(&load_module), &object) != 0)  // NOLINT(*-reinterpret-cast): POSIX.
        handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    // The program itself cannot be asked for by its name.
    if (handle == nullptr) handle = dlopen(nullptr, RTLD_LAZY);
    Dl_serinfo size{};
    if (handle == nullptr || dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
    const auto buffer = std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* const found = reinterpret_cast<Dl_serinfo*>(buffer.get());  // NOLINT(*-reinterpret-cast): its own layout.
    if (dlinfo(handle, RTLD_DI_SERINFOSIZE, found) != 0 || dlinfo(handle, RTLD_DI_SERINFO, found) != 0) return {};
    std::vector<fs::path> folders;
    for (const Dl_serpath& entry : std::span(&found->dls_serpath[0], found->dls_cnt)) {
        fs::path folder(entry.dls_name);
        // A relative one would depend on the working folder, where anybody may have put something.
        if (folder.is_absolute()) folders.push_back(std::move(folder));
    }
    return folders;
}

/// Where modules can be beside that: relative to the library, relative to the program, as built and as installed, and
/// where the library was to be installed.
std::vector<fs::path> usual_folders() {
    std::vector<fs::path> found = library_path();
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    if (!none) found.push_back(program.parent_path() / HOLDFAST_MODULES_FROM_PROGRAM);
    found.emplace_back(HOLDFAST_MODULES_INSTALLED);
    return found;
}

Error not_of_this_build(const fs::path& path, std::string_view difference) {
    return {Errc::store_unavailable,
            fmt::format("{} is of another build: {}; install the modules of one build, or name their folder in "
                        "HOLDFAST_MODULES",
                        path.string(), difference)};
}

}  // namespace

Result<const ModuleHead*> load_module(std::string_view kind, std::string_view name) {
    static constexpr AbiTag ours = HOLDFAST_ABI_TAG;
    const std::string file = fmt::format("holdfast-{}-{}.so", kind, name);
    const std::string entry = fmt::format("holdfast_{}_module_{}", kind, name);
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
        void* const found = dlsym(loaded, entry.c_str());
        if (found == nullptr)
            return std::unexpected(not_of_this_build(path, "it belongs to another version of holdfast"));
        // What is found by name is an object pointer; POSIX allows this cast.
        const ModuleHead* const module = reinterpret_cast<ModuleEntry>(found)();  // NOLINT
        if (const auto differs = difference(ours, module->abi))
            return std::unexpected(not_of_this_build(path, *differs));
        return module;
    }
    return fail(Errc::usage, fmt::format("this build has no {} {}: {} is not installed", name, kind, file));
}

}  // namespace holdfast::base
