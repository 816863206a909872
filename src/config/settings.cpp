#include "config/settings.hpp"

#include "config/holdfast_toml.hpp"
#include "config/places.hpp"
#include "config/store_urls.hpp"
#include "config/switch_word.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace holdfast::config {
namespace {

using std::chrono::milliseconds;

constexpr Setting store_file{"store-file", Takes::one};
constexpr const char* store_withheld = "HOLDFAST_STORE_WITHHELD";
constexpr const char* several_in_one =
    "several stores stand in one text; repeat --store, separate them by white space in HOLDFAST_STORE, or write a list "
    "in holdfast.toml; a comma inside of a URL is written %2c, white space %20";

/// The names, or other texts, in a variable, one on each line.
Result<std::vector<std::string>> names_in(std::string_view text, const Setting& which) {
    // Other than the names of locks, these may be any text.
    constexpr std::array any_text{"meta", "placeholder", "database", "fence"};
    const bool is_name = std::ranges::find(any_text, which.name) == any_text.end();
    if (text.find(',') != std::string_view::npos && is_name)
        return fail(Errc::usage, fmt::format("names stand one on each line, without commas; a name that has a comma in "
                                             "it is given with --{}",
                                             which.name));
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!line.empty()) names.emplace_back(line);
    }
    return names;
}

/// What the environment says of a setting: the values in `text`, which variable `origin` has.
Result<std::vector<std::string>> values_in(const std::string& text, const std::string& origin, const Setting& which) {
    if (which.takes != Takes::many) return std::vector{text};
    auto values = which.name == setting::store.name ? stores_in(text) : names_in(text, which);
    if (!values) return fail(values.error().code, origin + ": " + values.error().message);
    return values;
}

std::string working_folder() {
    std::error_code ignored;
    return std::filesystem::current_path(ignored).string();
}

std::string whole_path(const std::string& path) {
    std::error_code failed;
    const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
    return failed ? path : whole.string();
}

std::string folder_of(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::absolute(path, ignored).parent_path().string();
}

}  // namespace

Result<Settings> Settings::settle(const Purpose& purpose, const Given& given) {
    Settings settings;
    settings.name_ = purpose.name;
    settings.presents_lease_ = purpose.presents_lease;
    settings.hands_lease_on_ = purpose.hands_lease_on;
    settings.may_use_memory_ = purpose.may_use_memory;
    for (const auto& [name, texts] : given) settings.values_.emplace(name, Value{texts, "--" + name, Errc::usage});
    if (auto read = settings.read_environment(purpose); !read) return std::unexpected(read.error());
    if (purpose.known_keys != nullptr)
        if (auto read = settings.read_file(purpose); !read) return std::unexpected(read.error());
    if (auto good = settings.check_all(purpose); !good) return std::unexpected(good.error());
    return settings;
}

Result<void> Settings::read_environment(const Purpose& purpose) {
    for (const Setting* each : purpose.settings) {
        const std::string name = variable_of(*each);
        const auto text = each->from == From::command_line ? std::nullopt : variable(name);
        if (!text || given(*each)) continue;
        auto values = values_in(*text, name, *each);
        if (!values) return std::unexpected(values.error());
        values_.emplace(each->name, Value{std::move(*values), name, Errc::usage});
    }
    return {};
}

Result<void> Settings::read_store_file() {
    const auto path = given(setting::store) ? std::nullopt : variable(variable_of(store_file));
    if (!path) return {};
    const auto text = read_secret(*path);
    if (!text) return std::unexpected(text.error());
    auto urls = values_in(*text, variable_of(store_file), setting::store);
    if (!urls) return std::unexpected(urls.error());
    values_.emplace(setting::store.name, Value{std::move(*urls), variable_of(store_file), Errc::config});
    return {};
}

Result<void> Settings::read_file(const Purpose& purpose) {
    // The command line and the environment alone name the file.
    const auto named = given(setting::config) ? std::optional(text(setting::config)) : std::nullopt;
    const auto config = read_config(named, purpose.known_keys);
    if (!config) return std::unexpected(config.error());
    if (auto read = read_store_file(); !read) return read;
    if (!*config) return {};
    config_path_ = (*config)->path;
    policies_ = (*config)->policies;
    data_tables_ = (*config)->data_tables;
    for (const Setting* each : purpose.settings) {
        const auto entry = (*config)->entries.find(key_of(*each));
        if (entry == (*config)->entries.end() || given(*each)) continue;
        const std::string origin = fmt::format("{}:{}", printable(config_path_), entry->second.line);
        Value value{entry->second.values, origin, Errc::config};
        if (each->name == setting::store.name)
            for (std::string& url : value.texts) {
                auto whole = with_secrets(url, folder_of(config_path_));
                if (!whole) return fail(Errc::config, origin + ": " + whole.error().message);
                url = store_from(*whole, folder_of(config_path_));
            }
        values_.emplace(each->name, std::move(value));
    }
    return {};
}

Result<void> Settings::check_all(const Purpose& purpose) const {
    for (const Setting* each : purpose.settings)
        if (const auto error = check(*each)) return std::unexpected(*error);
    return {};
}

bool Settings::on_command_line(const Setting& which) const {
    const auto value = values_.find(which.name);
    return value != values_.end() && value->second.origin.starts_with("--");
}

bool Settings::in_environment(const Setting& which) const {
    const auto value = values_.find(which.name);
    return value != values_.end() && value->second.origin == variable_of(which);
}

std::string Settings::text(const Setting& which) const {
    const auto value = values_.find(which.name);
    return value == values_.end() || value->second.texts.empty() ? std::string(which.fallback)
                                                                 : value->second.texts.back();
}

std::vector<std::string> Settings::texts(const Setting& which) const {
    const auto value = values_.find(which.name);
    return value == values_.end() ? std::vector<std::string>{} : value->second.texts;
}

bool Settings::on(const Setting& which) const { return given(which) && parse_switch(text(which)).value_or(false); }

Result<milliseconds> Settings::duration(const Setting& which) const {
    auto time = parse_duration(text(which));
    if (!time) return blamed(which, time.error());
    // Longer than any lease can last is a slip of the pen, and sums with it could overflow.
    if (*time > Ttl::longest)
        return blamed(which, {Errc::usage, fmt::format("{} is more than {}", to_words(*time), to_words(Ttl::longest))});
    return time;
}

Result<std::uint64_t> Settings::number(const Setting& which, std::uint64_t most) const {
    const std::string digits = text(which);
    std::uint64_t number = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number);
    if (error != std::errc{} || end != last || number > most)
        return blamed(which,
                      {Errc::usage, fmt::format("\"{}\" is not a number from 0 to {}", printable(digits), most)});
    return number;
}

Result<Ttl> Settings::ttl(const Setting& which) const {
    const auto time = parse_duration(text(which));
    if (!time) return blamed(which, time.error());
    const auto ttl = Ttl::of(*time);
    if (!ttl) return blamed(which, ttl.error());
    return ttl;
}

Result<milliseconds> Settings::wait() const {
    if (on(setting::no_wait)) return milliseconds{0};
    if (text(setting::wait) == "forever") return milliseconds::max();
    return duration(setting::wait);
}

Result<std::vector<LockName>> Settings::names(const Setting& which) const {
    std::vector<LockName> names;
    for (const std::string& text : texts(which)) {
        auto name = LockName::parse(text);
        if (!name) return blamed(which, name.error());
        names.push_back(std::move(*name));
    }
    return names;
}

Result<std::map<std::string, std::string>> Settings::meta() const {
    std::map<std::string, std::string> meta;
    for (const std::string& text : texts(setting::meta)) {
        const std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos)
            return blamed(setting::meta, {Errc::usage, fmt::format("\"{}\" is not KEY=VALUE", printable(text))});
        const std::string key = text.substr(0, equals);
        if (!meta.emplace(key, text.substr(equals + 1)).second)
            return blamed(setting::meta, {Errc::usage, fmt::format("\"{}\" is there twice", printable(key))});
    }
    return meta;
}

Result<Credentials> Settings::lease() const {
    if (!given(setting::lease))
        return fail(Errc::usage,
                    "a lease is missing: set HOLDFAST_LEASE to what acquire printed, or pass it with --lease");
    auto as = Credentials::parse(text(setting::lease));
    if (!as) return blamed(setting::lease, as.error());
    return as;
}

Result<client::Wish> Settings::wish() const {
    client::Wish wish;
    if (given(setting::ttl)) {
        const auto time = duration(setting::ttl);
        if (!time) return std::unexpected(time.error());
        wish.ttl = *time;
    }
    if (given(setting::max_hold)) {
        const auto time = duration(setting::max_hold);
        if (!time) return std::unexpected(time.error());
        wish.max_hold = *time;
    }
    if (given(setting::wait) || given(setting::no_wait)) {
        const auto time = wait();
        if (!time) return std::unexpected(time.error());
        wish.wait = *time;
        wish.wait_is_usual = !on_command_line(setting::wait) && !in_environment(setting::wait);
    }
    auto excluded = names(setting::unless_held);
    if (!excluded) return std::unexpected(excluded.error());
    wish.unless_held = std::move(*excluded);
    return wish;
}

Result<client::Terms> Settings::terms_for(const LockName& name) const {
    const auto wished = wish();
    if (!wished) return std::unexpected(wished.error());
    return terms_for(name, *wished);
}

Result<client::Terms> Settings::terms_for(const LockName& name, const client::Wish& wished) const {
    auto terms = client::terms_for(name, policies_, wished);
    if (terms) return terms;
    // What is outside the limits is blamed on where it stands.
    const bool is_ttl = wished.ttl && !client::terms_for(name, policies_, {.ttl = wished.ttl});
    const bool is_hold = wished.max_hold && !client::terms_for(name, policies_, {.max_hold = wished.max_hold});
    if (is_ttl) return blamed(setting::ttl, terms.error());
    if (is_hold) return blamed(setting::max_hold, terms.error());
    return terms;
}

std::optional<bool> Settings::may_unlock(const LockName& name) const { return client::may_unlock(name, policies_); }

bool Settings::may_use_default_store() const {
    // `run` names its store to its child unless that holds a secret; so inside of `run` the lock is elsewhere.
    if (variable("HOLDFAST_LOCK_ID") || variable("HOLDFAST_LEASES") || variable(store_withheld)) return false;
    if (!may_be_the_wrong_store()) return true;
    // A command that presents the lease is refused by a store that does not know it, unless it says that this is fine.
    return presents_lease_ && !on(setting::if_held);
}

bool Settings::may_be_the_wrong_store() const {
    const auto lease = variable("HOLDFAST_LEASE");
    return uses_default_store() && lease &&
           !lease->starts_with(variable(std::string(in_default_store)).value_or("\n") + ".");
}

bool Settings::is_from_another_file() const {
    const auto withheld = variable(store_withheld);
    if (!withheld || config_path_.empty()) return false;
    const auto value = values_.find(setting::store.name);
    const bool from_file = value != values_.end() && value->second.origin.starts_with(printable(config_path_) + ":");
    return from_file && whole_path(config_path_) != *withheld;
}

Result<client::Wish> Settings::ttl_wish() const {
    client::Wish wish;
    if (given(setting::ttl)) {
        const auto time = ttl(setting::ttl);
        if (!time) return std::unexpected(time.error());
        wish.ttl = time->time();
    }
    return wish;
}

Result<client::Terms> Settings::terms_for_ttl(const LockName& name) const {
    const auto wish = ttl_wish();
    if (!wish) return std::unexpected(wish.error());
    return terms_for(name, *wish);
}

Result<client::Terms> Settings::terms_for_renewal(const LockName& name) const {
    auto wish = ttl_wish();
    if (!wish) return std::unexpected(wish.error());
    wish->renews = true;
    return terms_for(name, *wish);
}

Result<std::vector<std::string>> Settings::store_urls() const {
    auto urls = texts(setting::store);
    if (urls.empty()) {
        if (!may_use_default_store())
            return fail(Errc::config,
                        "a lease is in the environment (HOLDFAST_LEASE) and no store is named, so this command would "
                        "look into the built-in default store, where that lease may be unknown; name the lease's store "
                        "with --store or HOLDFAST_STORE, or unset HOLDFAST_LEASE");
        auto usual = default_store();
        if (!usual) return std::unexpected(usual.error());
        urls.push_back(std::move(*usual));
    }
    if (is_from_another_file())
        return blamed(
            setting::store,
            {Errc::config,
             "the holdfast run around this command uses another store, whose URL it did not pass on because it "
             "may hold a secret; name the store with --store or HOLDFAST_STORE"});
    for (const std::string& url : urls) {
        if (url.starts_with("memory:") && !may_use_memory_)
            return fail(Errc::config,
                        "memory: ends with this command, so it would keep nobody out; only bench uses it; name another "
                        "store with --store or HOLDFAST_STORE");
        if (hands_lease_on_ && (on(setting::session) || asks_for_session(url)))
            return fail(Errc::usage,
                        fmt::format("what {} grants would end with its session, before anybody could use it; leave "
                                    "{} out, or use run, which stays",
                                    name_, on(setting::session) ? "--session" : "session=on"));
    }
    return urls;
}

StoreForChild Settings::store_for_child() const {
    const auto urls = store_urls();
    if (!urls) return {.withheld = variable(store_withheld)};
    // The child may change its working directory.
    const std::string here = working_folder();
    if (uses_default_store() || in_environment(setting::store) || std::ranges::none_of(*urls, may_hold_secret))
        return {.urls = joined_stores(*urls, here)};
    const std::string& origin = values_.find(setting::store.name)->second.origin;
    if (origin.starts_with("--")) return {.withheld = origin};
    if (origin != variable_of(store_file)) return {.withheld = whole_path(config_path_)};
    // A relative path in the file would be another store in another folder.
    if (std::ranges::any_of(*urls, [&](const std::string& url) { return store_from(url, here) != url; }))
        return {.withheld = origin};
    return {.file = whole_path(*variable(variable_of(store_file)))};
}

Result<std::string> Settings::store_url() const {
    auto urls = store_urls();
    if (!urls) return std::unexpected(urls.error());
    if (urls->size() > 1)
        return blamed(setting::store,
                      {Errc::usage, "several stores at once are not for this command; name one with --store"});
    return std::move(urls->front());
}

std::optional<Error> Settings::check(const Setting& which) const {
    if (!given(which)) return std::nullopt;
    const Value& value = values_.find(which.name)->second;
    const auto bad = [&](const std::string& why) { return blamed(which, {Errc::usage, why}).error(); };
    if (which.takes != Takes::many && value.texts.size() != 1) return bad("one value is expected");
    for (const std::string& text : value.texts) {
        if (text.find('\0') != std::string::npos) return bad("a value contains a NUL byte");
        if (which.takes == Takes::nothing && !parse_switch(text)) return bad("a switch is on or off");
        if (which.name == setting::store.name && is_several_stores(text))
            return blamed(which, {Errc::config, several_in_one}).error();
        const auto choices = split_choices(which.choices);
        if (!choices.empty() && std::ranges::find(choices, text) == choices.end())
            return bad(fmt::format("it is one of {}", fmt::join(choices, ", ")));
    }
    return std::nullopt;
}

std::unexpected<Error> Settings::blamed(const Setting& which, Error error) const {
    const auto value = values_.find(which.name);
    if (value == values_.end()) return std::unexpected(std::move(error));
    error.message = value->second.origin + ": " + error.message;
    if (value->second.blame == Errc::config) error.code = Errc::config;
    return std::unexpected(std::move(error));
}

}  // namespace holdfast::config
