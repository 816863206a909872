#include "tidy/arrows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>

namespace holdfast::tidy {
namespace {

/// A zone is a folder of src/, or `include`. Below stores/ and guards/ every folder is a zone of its own,
/// written `stores/file`, and in a rule `stores/*`.
struct Rule {
    std::string_view from;
    std::vector<std::string_view> to;  ///< Beside `include` and the zone itself, which are always allowed.
};

const std::array rules{
    Rule{"include", {}},
    Rule{"values", {}},
    Rule{"kernel", {"values"}},
    Rule{"base", {"values"}},
    Rule{"sql", {"values", "base"}},
    // The one file that knows every store. The first rule that fits decides, so it stands before `stores/*`.
    Rule{"stores/open_store.cpp", {"values", "base", "kernel", "stores", "stores/*", "stores/open_store.hpp"}},
    // A daemon's store speaks in documents.
    Rule{"stores/http", {"values", "base", "kernel", "json", "stores", "stores/common"}},
    Rule{"stores/*", {"values", "base", "kernel", "sql", "stores", "stores/common"}},
    Rule{"stores", {"values", "base", "kernel"}},
    Rule{"client", {"values", "base", "kernel"}},
    Rule{"json", {"values"}},
    Rule{"config", {"values", "base", "client"}},
    Rule{"access", {"values", "base", "json"}},
    // Its files are JSON documents.
    Rule{"guards/worktree", {"values", "base", "json", "client", "guards"}},
    Rule{"guards/*", {"values", "base", "sql", "client", "guards"}},
    Rule{"guards", {"values", "base", "client"}},
    Rule{"cli",
         {"values", "base", "sql", "json", "config", "access", "client", "guards", "guards/*", "stores/open_store.hpp",
          "server/serve.hpp"}},
    // What the command knows of the daemon, which is a module.
    Rule{"server/serve.hpp", {"client"}},
    Rule{"server", {"values", "base", "json", "config", "access", "client", "guards", "guards/*", "server/serve.hpp"}},
};

/// The zone of a path below src/.
std::string zone_below_src(std::string_view path) {
    if (path == "stores/open_store.cpp" || path == "stores/open_store.hpp" || path == "server/serve.hpp")
        return std::string(path);
    const auto first = path.find('/');
    const std::string_view top = path.substr(0, first);
    if (top != "stores" && top != "guards") return std::string(top);
    const auto second = path.find('/', first + 1);
    return std::string(second == std::string_view::npos ? top : path.substr(0, second));
}

std::optional<std::string> zone_of_file(std::string_view path) {
    if (path.starts_with("include/")) return "include";
    if (path.starts_with("src/")) return zone_below_src(path.substr(4));
    return std::nullopt;
}

/// Empty for a header that is neither public nor named from the root of src/.
std::optional<std::string> zone_of_header(std::string_view header) {
    if (header.starts_with("holdfast/")) return "include";
    if (header.find('/') == std::string_view::npos || header.starts_with(".")) return std::nullopt;
    return zone_below_src(header);
}

bool covers(std::string_view pattern, std::string_view zone) {
    if (pattern == zone) return true;
    return pattern.ends_with("/*") && zone.starts_with(pattern.substr(0, pattern.size() - 1));
}

const Rule* rule_for(std::string_view zone) {
    const auto rule = std::ranges::find_if(rules, [&](const Rule& r) { return covers(r.from, zone); });
    return rule == rules.end() ? nullptr : &*rule;
}

bool allowed(const Rule& rule, std::string_view from, std::string_view to) {
    if (to == "include" || to == from) return true;
    return std::ranges::any_of(rule.to, [&](std::string_view pattern) { return covers(pattern, to); });
}

Complaints broken_in(const SourceFile& file, std::string_view zone, const Rule& rule) {
    Complaints complaints;
    for (const Include& include : includes_of(file)) {
        const std::string where = place(file, include.line);
        const bool ours_in_brackets = !include.quoted && include.header.starts_with("holdfast/");
        if (ours_in_brackets) complaints.push_back(fmt::format("{}: {} is ours: quote it", where, include.header));
        if (!include.quoted) continue;
        const auto to = zone_of_header(include.header);
        if (!to)
            complaints.push_back(fmt::format("{}: name {} from the root of src/", where, include.header));
        else if (!allowed(rule, zone, *to))
            complaints.push_back(fmt::format("{}: {} may not include {}", where, zone, include.header));
    }
    return complaints;
}

/// Which files may include the headers that `pattern` describes.
struct Library {
    std::string_view name;
    std::regex pattern;
    std::vector<std::string_view> folders;
    std::size_t most_files;
};

const std::array<Library, 9>& libraries() {
    constexpr std::size_t any = 1000;
    static const std::array<Library, 9> all{
        Library{"SQLite", std::regex("^sqlite3.*\\.h$"), {"src/sql/sqlite/", "src/stores/sqlite/"}, any},
        Library{"hiredis", std::regex("^hiredis/"), {"src/stores/redis/"}, any},
        Library{"OpenSSL", std::regex("^openssl/"), {"src/stores/etcd/", "src/stores/redis/"}, any},
        Library{"libpq", std::regex("^(libpq-fe\\.h$|postgresql/)"), {"src/sql/postgres/"}, any},
        Library{"libcurl", std::regex("^curl/"), {"src/stores/etcd/", "src/stores/http/"}, any},
        Library{"nghttp2", std::regex("^nghttp2/"), {"src/stores/etcd/"}, 1},
        Library{"MariaDB", std::regex("^(mysql|errmsg)\\.h$"), {"src/sql/mysql/"}, any},
        Library{"toml++", std::regex("^toml(\\+\\+)?[./]"), {"src/config/"}, 1},
        Library{"Boost", std::regex("^boost/"), {"include/holdfast/asio.hpp", "src/json/", "src/server/"}, any},
    };
    return all;
}

}  // namespace

Complaints broken_arrows(const std::vector<SourceFile>& files) {
    Complaints complaints;
    for (const SourceFile& file : files) {
        const auto zone = zone_of_file(file.path);
        if (!zone) continue;
        const Rule* rule = rule_for(*zone);
        if (rule == nullptr) {
            complaints.push_back(fmt::format("{}: no rule says what {} may include", file.path, *zone));
            continue;
        }
        std::ranges::move(broken_in(file, *zone, *rule), std::back_inserter(complaints));
    }
    return complaints;
}

Complaints escaped_libraries(const std::vector<SourceFile>& files) {
    static const std::regex standard("^[a-z_0-9]+$");
    Complaints complaints;
    std::map<std::string_view, std::set<std::string>> users;
    for (const SourceFile& file : files) {
        for (const Include& include : includes_of(file)) {
            const std::string where = place(file, include.line);
            // A program that includes a header of ours needs nothing but a compiler, except for the one that is for a
            // library's users.
            const bool is_for_asio =
                file.path == "include/holdfast/asio.hpp" && include.header.starts_with("boost/asio/");
            if (file.path.starts_with("include/") && !is_for_asio && !include.quoted &&
                !std::regex_search(include.header, standard))
                complaints.push_back(fmt::format("{}: {} is not of the standard library", where, include.header));
            for (const Library& library : libraries()) {
                if (!std::regex_search(include.header, library.pattern)) continue;
                users[library.name].insert(file.path);
                const auto inside = [&](std::string_view folder) { return file.path.starts_with(folder); };
                if (!std::ranges::any_of(library.folders, inside))
                    complaints.push_back(
                        fmt::format("{}: {} stays inside {}", where, library.name, fmt::join(library.folders, ", ")));
            }
        }
    }
    for (const Library& library : libraries())
        if (users[library.name].size() > library.most_files)
            complaints.push_back(fmt::format("{} is known to more than {} file: {}", library.name, library.most_files,
                                             fmt::join(users[library.name], ", ")));
    return complaints;
}

}  // namespace holdfast::tidy
