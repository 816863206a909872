#include "config/holdfast_toml.hpp"

#include "config/config_file.hpp"
#include "config/nearest.hpp"
#include "config/places.hpp"
#include "config/policy_text.hpp"
#include "config/setting.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <filesystem>

// The only file that knows toml++.
namespace holdfast::config {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view file_name = "holdfast.toml";

/// Whether something is at `path`, readable or not: what is there and cannot be read is an error.
bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

Result<std::optional<std::string>> find_file() {
    std::error_code error;
    const fs::path here = fs::current_path(error);
    // A file that nobody can look for must not be passed over either.
    if (error)
        return fail(Errc::config, fmt::format("the working folder is gone ({}), so no holdfast.toml can be looked for; "
                                              "change to another folder, or name a file with --config",
                                              error.message()));
    for (fs::path folder = here;; folder = folder.parent_path()) {
        if (is_there(folder / file_name)) return (folder / file_name).string();
        if (folder == folder.parent_path()) break;
    }
    for (const std::string& folder : config_folders())
        if (is_there(fs::path(folder) / file_name)) return (fs::path(folder) / file_name).string();
    return std::nullopt;
}

/// The text of a plain value; absent for tables, dates and the like.
std::optional<std::string> text_of(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* yes = node.as_boolean()) return yes->get() ? "on" : "off";
    return std::nullopt;
}

/// Whether a list is written as one text with commas. That would be one name, which nobody ever holds.
bool is_list_in_a_text(std::string_view key, const toml::node& node) {
    const auto* text = node.as_string();
    return key == key_of(setting::unless_held) && text != nullptr && text->get().find(',') != std::string::npos;
}

constexpr std::string_view write_a_list = "several names are a list: [\"a\", \"b\"]";

std::optional<std::vector<std::string>> texts_of(const toml::node& node) {
    std::vector<std::string> texts;
    const toml::array* array = node.as_array();
    if (array == nullptr) {
        auto text = text_of(node);
        if (!text) return std::nullopt;
        return std::vector{std::move(*text)};
    }
    for (const toml::node& item : *array) {
        auto text = text_of(item);
        if (!text) return std::nullopt;
        texts.push_back(std::move(*text));
    }
    return texts;
}

Result<std::vector<client::Policy>> policies_in(const std::string& path, const toml::node& node) {
    const auto bad = [&](const toml::source_region& where, const std::string& why) {
        return fail(Errc::config, fmt::format("{}:{}: {}", printable(path), where.begin.line, why));
    };
    std::vector<client::Policy> policies;
    const toml::array* tables = node.as_array();
    if (tables == nullptr) return bad(node.source(), "policies are written [[policy]]");
    for (const toml::node& item : *tables) {
        const toml::table* table = item.as_table();
        if (table == nullptr) return bad(item.source(), "policies are written [[policy]]");
        client::Policy policy;
        for (const auto& [key, value] : *table) {
            const std::string name(key.str());
            if (std::ranges::find(policy_keys, name) == policy_keys.end())
                return bad(key.source(), fmt::format("unknown key \"{}\" in a policy; it is one of {}", printable(name),
                                                     fmt::join(policy_keys, ", ")));
            if (is_list_in_a_text(name, value)) return bad(key.source(), fmt::format("{}: {}", name, write_a_list));
            const auto texts = texts_of(value);
            const auto reason =
                texts ? set_policy(policy, name, *texts) : std::optional<std::string>("not a plain value");
            if (reason) return bad(key.source(), name + ": " + *reason);
        }
        if (policy.match.empty()) return bad(item.source(), "a policy needs match, such as match = \"deploy/*\"");
        policies.push_back(std::move(policy));
    }
    return policies;
}

/// Why this cannot be the name of a table, which is also that of a folder.
std::optional<std::string> reason_against(const std::string& table) {
    if (table.empty()) return "a table needs a name";
    if (table.front() == '.' || table.find('/') != std::string::npos || has_control(table))
        return "the name of a table is that of its folder: without a slash, without a dot at its beginning";
    return std::nullopt;
}

/// Why the value does not fit.
std::optional<std::string> set_data_table(DataTable& table, std::string_view key,
                                          const std::optional<std::vector<std::string>>& texts) {
    if (!texts) return "not a plain value";
    if (key == "key") {
        table.key = *texts;
        return table.key.empty() ? std::optional<std::string>("a key has at least one column") : std::nullopt;
    }
    if (texts->size() != 1) return "one value is expected";
    if (key == "name") {
        table.name = texts->front();
        return reason_against(table.name);
    }
    table.strategy = texts->front();
    return std::nullopt;
}

Result<std::vector<DataTable>> data_tables_in(const std::string& path, const toml::node& node) {
    const auto bad = [&](const toml::source_region& where, const std::string& why) {
        return fail(Errc::config, fmt::format("{}:{}: {}", printable(path), where.begin.line, why));
    };
    constexpr auto form = "data is written [[data.table]]";
    constexpr std::array known{"name", "strategy", "key"};
    const toml::table* data = node.as_table();
    if (data == nullptr) return bad(node.source(), form);
    std::vector<DataTable> tables;
    for (const auto& [name, list] : *data) {
        if (name.str() != "table" || list.as_array() == nullptr) return bad(name.source(), form);
        for (const toml::node& item : *list.as_array()) {
            const toml::table* entry = item.as_table();
            if (entry == nullptr) return bad(item.source(), form);
            DataTable table;
            table.line = item.source().begin.line;
            for (const auto& [key, value] : *entry) {
                if (std::ranges::find(known, key.str()) == known.end())
                    return bad(key.source(), fmt::format("unknown key \"{}\" in a data table; it is one of {}",
                                                         printable(key.str()), fmt::join(known, ", ")));
                if (const auto reason = set_data_table(table, key.str(), texts_of(value)))
                    return bad(key.source(), fmt::format("{}: {}", key.str(), *reason));
            }
            if (table.name.empty() || table.strategy.empty())
                return bad(item.source(), "a data table needs name and strategy");
            if (std::ranges::find(tables, table.name, &DataTable::name) != tables.end())
                return bad(item.source(), fmt::format("the table \"{}\" is there twice", printable(table.name)));
            tables.push_back(std::move(table));
        }
    }
    return tables;
}

/// Adds what is written in `table`, whose keys begin with `section`.
Result<void> read_keys(Config& config, const toml::table& table, const std::string& section,
                       const std::vector<std::string>& known) {
    const std::string path = config.path;
    for (const auto& [key, node] : table) {
        const std::size_t line = key.source().begin.line;
        const auto bad = [&](const std::string& why) {
            return fail(Errc::config, fmt::format("{}:{}: {}", printable(path), line, why));
        };
        const std::string name = section + std::string(key.str());
        if (name == "policy") {
            auto policies = policies_in(path, node);
            if (!policies) return std::unexpected(policies.error());
            config.policies = std::move(*policies);
            continue;
        }
        if (name == "data") {
            auto tables = data_tables_in(path, node);
            if (!tables) return std::unexpected(tables.error());
            config.data_tables = std::move(*tables);
            continue;
        }
        const bool is_section =
            std::ranges::any_of(known, [&](const std::string& each) { return each.starts_with(name + "."); });
        if (is_section && node.is_table()) {
            if (auto read = read_keys(config, *node.as_table(), name + ".", known); !read) return read;
            continue;
        }
        if (std::ranges::find(known, name) == known.end()) {
            const std::string near = nearest(name, known);
            return bad(fmt::format("unknown key \"{}\"{}", printable(name),
                                   near.empty() ? "" : "; did you mean " + near + "?"));
        }
        if (is_list_in_a_text(name, node)) return bad(fmt::format("{}: {}", name, write_a_list));
        auto texts = texts_of(node);
        if (!texts) return bad(name + " is a text, a number, a truth value or a list of texts");
        config.entries.emplace(name, ConfigEntry{std::move(*texts), line});
    }
    return {};
}

Result<Config> understand(const std::string& path, const toml::table& table, const std::vector<std::string>& known) {
    Config config{.path = path};
    if (auto read = read_keys(config, table, "", known); !read) return std::unexpected(read.error());
    return config;
}

/// toml++ 3.3 relies on what it has not checked when it meets certain bytes that no TOML file contains.
Result<void> expect_plain_text(const std::string& path, std::string_view text) {
    std::size_t line = 1;
    for (const char c : text) {
        if (c == '\n') ++line;
        const bool allowed = c == '\n' || c == '\r' || c == '\t' || !has_control(std::string_view(&c, 1));
        if (!allowed) return fail(Errc::config, fmt::format("{}:{}: a control character", printable(path), line));
    }
    if (!is_utf8(text)) return fail(Errc::config, printable(path) + ": the text is not UTF-8");
    return {};
}

}  // namespace

Result<std::optional<Config>> read_config(const std::optional<std::string>& named,
                                          std::vector<std::string> (*known_keys)()) {
    std::optional<std::string> path = named;
    if (!path) {
        auto found = find_file();
        if (!found) return std::unexpected(found.error());
        path = std::move(*found);
    }
    if (!path) return std::nullopt;
    const auto text = read_config_file(*path, named ? Chosen::by_name : Chosen::by_search);
    if (!text) return std::unexpected(text.error());
    if (auto plain = expect_plain_text(*path, *text); !plain) return std::unexpected(plain.error());
    try {
        auto config = understand(*path, toml::parse(*text), known_keys());
        if (!config) return std::unexpected(config.error());
        return std::move(*config);
    } catch (const toml::parse_error& error) {
        return fail(Errc::config, fmt::format("{}:{}: {}", printable(*path), error.source().begin.line,
                                              printable(error.description())));
    }
}

Result<std::string> read_secret(const std::string& path) {
    auto text = read_config_file(path, Chosen::by_name);
    if (!text) return text;
    while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
    if (text->empty()) return fail(Errc::config, printable(path) + " is empty");
    return text;
}

Result<std::string> with_secrets(const std::string& text, const std::string& folder) {
    constexpr std::string_view open = "${file:";
    std::string result;
    std::string_view rest = text;
    for (auto at = rest.find(open); at != std::string_view::npos; at = rest.find(open)) {
        result += rest.substr(0, at);
        rest.remove_prefix(at + open.size());
        const auto end = rest.find('}');
        if (end == std::string_view::npos) return fail(Errc::config, "${file:… is not closed with a }");
        const auto secret = read_secret((fs::path(folder) / rest.substr(0, end)).string());
        if (!secret) return secret;
        result += *secret;
        rest.remove_prefix(end + 1);
    }
    return result + std::string(rest);
}

}  // namespace holdfast::config
