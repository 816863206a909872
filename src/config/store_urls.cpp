#include "config/store_urls.hpp"

#include "base/url.hpp"
#include "config/places.hpp"
#include "holdfast/open.hpp"
#include "values/hex.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace holdfast::config {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";

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

Result<std::vector<std::string>> stores_in(std::string_view text) {
    std::vector<std::string> stores;
    for (auto begin = text.find_first_not_of(white_space); begin != std::string_view::npos;
         begin = text.find_first_not_of(white_space)) {
        text.remove_prefix(begin);
        stores.emplace_back(text.substr(0, text.find_first_of(white_space)));
        text.remove_prefix(stores.back().size());
    }
    if (stores.empty()) return fail(Errc::config, "no store is named there");
    if (stores.size() == 1) return stores;
    // The piece itself is not shown: it may be the end of a password.
    for (std::size_t i = 0; i < stores.size(); ++i)
        if (!has_known_scheme(stores[i]) || stores[i].ends_with(','))
            return fail(Errc::config,
                        fmt::format("stores are separated by white space, and number {} of {} begins with no scheme of "
                                    "a store or ends with a comma; white space inside of a URL is written %20",
                                    i + 1, stores.size()));
    return stores;
}

bool is_several_stores(std::string_view text) {
    const std::string separators = "," + std::string(white_space);
    for (auto at = text.find_first_of(separators); at != std::string_view::npos; at = text.find_first_of(separators)) {
        text.remove_prefix(at + 1);
        if (has_known_scheme(text.substr(0, text.find_first_of(separators)))) return true;
    }
    return false;
}

bool may_hold_secret(std::string_view url) {
    return url.find('@') != std::string_view::npos || url.find("password") != std::string_view::npos;
}

bool asks_for_session(const std::string& url) {
    const auto parsed = base::Url::parse(url);
    if (!parsed) return false;
    const auto session = parsed->parameters.find("session");
    return session != parsed->parameters.end() && session->second == "on";
}

Result<std::string> default_store() {
    const auto state = state_folder();
    if (!state)
        return fail(Errc::config,
                    "HOME is not set to an absolute path, so there is no default store; name one with --store or "
                    "HOLDFAST_STORE");
    return "sqlite:" + escaped_path(below(*state, "holdfast.db"));
}

std::string store_from(const std::string& url, const std::string& folder) {
    const auto colon = url.find(':');
    if (colon == std::string::npos) return url;
    const std::string_view place = std::string_view(url).substr(colon + 1);
    // What counts is the path that the store will open: an escaped slash begins an absolute one, too.
    const bool absolute = place.starts_with('/') || place.starts_with("%2f") || place.starts_with("%2F");
    const bool relative = !place.empty() && !place.starts_with('?') && !absolute;
    return relative ? url.substr(0, colon + 1) + below(escaped_path(folder), url.substr(colon + 1)) : url;
}

std::string joined_stores(const std::vector<std::string>& urls, const std::string& folder) {
    std::string all;
    for (const std::string& url : urls) all += (all.empty() ? "" : " ") + escaped(store_from(url, folder), white_space);
    return all;
}

}  // namespace holdfast::config
