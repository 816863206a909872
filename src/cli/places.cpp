#include "cli/places.hpp"

#include <cstdlib>

namespace holdfast::cli {
namespace {

/// `$name`, or the folder below the home directory. A relative one is to be ignored, says the standard.
std::optional<std::string> xdg_folder(const std::string& name, std::string_view below_home) {
    if (auto folder = variable(name); folder && folder->front() == '/') return folder;
    if (const auto home = variable("HOME")) return *home + "/" + std::string(below_home);
    return std::nullopt;
}

/// A path as it is written in a URL.
std::string escaped(std::string_view path) {
    std::string text;
    for (const char c : path) {
        if (c == '%')
            text += "%25";
        else if (c == '?')
            text += "%3f";
        else
            text += c;
    }
    return text;
}

}  // namespace

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

std::vector<std::string> config_folders() {
    std::vector<std::string> folders;
    if (const auto user = xdg_folder("XDG_CONFIG_HOME", ".config")) folders.push_back(*user + "/holdfast");
    folders.emplace_back("/etc/holdfast");
    return folders;
}

Result<std::string> default_store() {
    const auto state = xdg_folder("XDG_STATE_HOME", ".local/state");
    if (!state) return fail(Errc::config, "HOME is not set, so there is no default store; name one with --store");
    return "sqlite:" + escaped(*state) + "/holdfast/holdfast.db";
}

std::string store_from(const std::string& url, const std::string& folder) {
    const auto colon = url.find(':');
    const bool relative =
        colon != std::string::npos && colon + 1 < url.size() && url[colon + 1] != '/' && url[colon + 1] != '?';
    return relative ? url.substr(0, colon + 1) + escaped(folder) + "/" + url.substr(colon + 1) : url;
}

}  // namespace holdfast::cli
