#include "cli/places.hpp"

#include "values/hex.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

namespace holdfast::cli {
namespace {

/// The absolute folder that a variable names, with one slash at its beginning: in a URL two would begin the name of a
/// server. A relative one is to be ignored, says the standard.
std::optional<std::string> folder_in(const std::string& name) {
    auto folder = variable(name);
    if (!folder || folder->front() != '/') return std::nullopt;
    return folder->substr(std::min(folder->find_first_not_of('/'), folder->size()) - 1);
}

/// `folder/name`, also if the folder is `/`.
std::string below(const std::string& folder, std::string_view name) {
    return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

/// `$name`, or the folder below the home directory.
std::optional<std::string> xdg_folder(const std::string& name, std::string_view below_home) {
    if (auto folder = folder_in(name)) return folder;
    if (const auto home = folder_in("HOME")) return below(*home, below_home);
    return std::nullopt;
}

/// `text` with those of its letters that are in `letters` as %-escapes.
std::string escaped(std::string_view text, std::string_view letters) {
    std::string result;
    for (const char c : text) {
        if (letters.find(c) == std::string_view::npos) {
            result += c;
            continue;
        }
        const std::array raw{static_cast<std::uint8_t>(c)};
        result += "%" + to_hex(raw);
    }
    return result;
}

/// A path as it is written in a URL.
std::string escaped_path(std::string_view path) { return escaped(path, std::string(white_space) + "%?"); }

}  // namespace

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

Result<std::string> default_store() {
    const auto state = xdg_folder("XDG_STATE_HOME", ".local/state");
    if (!state)
        return fail(Errc::config,
                    "HOME is not set to an absolute path, so there is no default store; name one with --store or "
                    "HOLDFAST_STORE");
    return "sqlite:" + escaped_path(below(*state, "holdfast/holdfast.db"));
}

std::string store_from(const std::string& url, const std::string& folder) {
    const auto colon = url.find(':');
    const bool relative =
        colon != std::string::npos && colon + 1 < url.size() && url[colon + 1] != '/' && url[colon + 1] != '?';
    return relative ? url.substr(0, colon + 1) + below(escaped_path(folder), url.substr(colon + 1)) : url;
}

std::string as_one_word(const std::string& url) { return escaped(url, white_space); }

}  // namespace holdfast::cli
