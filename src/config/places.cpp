#include "config/places.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::config {
namespace {

/// The absolute folder that a variable names, with one slash at its beginning: in a URL two would begin the name of a
/// server. A relative one is to be ignored, says the standard.
std::optional<std::string> folder_in(const std::string& name) {
    auto folder = variable(name);
    if (!folder || folder->front() != '/') return std::nullopt;
    return folder->substr(std::min(folder->find_first_not_of('/'), folder->size()) - 1);
}

/// `$name`, or the folder below the home directory.
std::optional<std::string> xdg_folder(const std::string& name, std::string_view below_home) {
    if (auto folder = folder_in(name)) return folder;
    if (const auto home = folder_in("HOME")) return below(*home, below_home);
    return std::nullopt;
}

}  // namespace

std::string below(const std::string& folder, std::string_view name) {
    return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

std::vector<std::string> config_folders() {
    std::vector<std::string> folders;
    if (const auto user = xdg_folder("XDG_CONFIG_HOME", ".config")) folders.push_back(below(*user, "holdfast"));
    folders.emplace_back("/etc/holdfast");
    return folders;
}

std::optional<std::string> state_folder() {
    const auto state = xdg_folder("XDG_STATE_HOME", ".local/state");
    if (!state) return std::nullopt;
    return below(*state, "holdfast");
}

}  // namespace holdfast::config
