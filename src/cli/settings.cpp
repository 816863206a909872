#include "cli/settings.hpp"

#include "base/url.hpp"
#include "cli/places.hpp"
#include "cli/switch_word.hpp"
#include "holdfast/open.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr Option store_file{"store-file", '\0', Takes::one, "F", ""};

/// The stores that HOLDFAST_STORE or the file of HOLDFAST_STORE_FILE names, separated by white space.
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
        if (!has_known_scheme(stores[i]))
            return fail(Errc::config,
                        fmt::format("stores are separated by white space, and number {} of {} begins with no scheme of "
                                    "a store; white space inside of a URL is written %20",
                                    i + 1, stores.size()));
    return stores;
}

/// The names in a variable, one on each line.
Result<std::vector<std::string>> names_in(std::string_view text, const Option& option) {
    if (text.find(',') != std::string_view::npos)
        return fail(Errc::usage, fmt::format("names stand one on each line, without commas; a name that has a comma in "
                                             "it is given with --{}",
                                             option.name));
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!line.empty()) names.emplace_back(line);
    }
    return names;
}

/// What the environment says of an option: the values in `text`, which variable `origin` has.
Result<std::vector<std::string>> values_in(const std::string& text, const std::string& origin, const Option& option) {
    if (option.takes != Takes::many) return std::vector{text};
    auto values = option.name == opt::store.name ? stores_in(text) : names_in(text, option);
    if (!values) return fail(values.error().code, origin + ": " + values.error().message);
    return values;
}

/// Commands that say something of Holdfast itself. They work also where the configuration does not.
bool reads_configuration(const Command& command) {
    return &command != &help_command && &command != &completion_command && &command != &version_command;
}

bool takes(const Command& command, const Option& option) {
    return std::ranges::find(command.options, option.name, &Option::name) != command.options.end();
}

bool asks_for_session(const std::string& url) {
    const auto parsed = base::Url::parse(url);
    if (!parsed) return false;
    const auto session = parsed->parameters.find("session");
    return session != parsed->parameters.end() && session->second == "on";
}

std::string folder_of(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::absolute(path, ignored).parent_path().string();
}

}  // namespace

bool may_hold_secret(std::string_view url) {
    return url.find('@') != std::string_view::npos || url.find("password") != std::string_view::npos;
}

Result<Settings> Settings::settle(const CommandLine& line) {
    Settings settings;
    settings.command_ = line.command;
    for (const auto& [name, texts] : line.given) settings.values_.emplace(name, Value{texts, "--" + name, Errc::usage});
    const auto options = options_of(*line.command);
    for (const Option* option : options) {
        const std::string name = variable_of(*option);
        const auto text = option->from == From::command_line ? std::nullopt : variable(name);
        if (!text || settings.given(*option)) continue;
        auto values = values_in(*text, name, *option);
        if (!values) return std::unexpected(values.error());
        settings.values_.emplace(option->name, Value{std::move(*values), name, Errc::usage});
    }
    if (!reads_configuration(*line.command)) return settings.checked(options);
    // The command line and the environment alone name the file.
    const auto named = settings.given(opt::config) ? std::optional(settings.text(opt::config)) : std::nullopt;
    const auto config = read_config(named);
    if (!config) return std::unexpected(config.error());
    if (!settings.given(opt::store))
        if (const auto path = variable(variable_of(store_file))) {
            const auto text = read_secret(*path);
            if (!text) return std::unexpected(text.error());
            auto urls = values_in(*text, variable_of(store_file), opt::store);
            if (!urls) return std::unexpected(urls.error());
            settings.values_.emplace(opt::store.name, Value{std::move(*urls), variable_of(store_file), Errc::config});
        }
    if (*config) {
        settings.config_path_ = (*config)->path;
        settings.policies_ = (*config)->policies;
        for (const Option* option : options) {
            const auto entry = (*config)->entries.find(key_of(*option));
            if (entry == (*config)->entries.end() || settings.given(*option)) continue;
            const std::string origin = fmt::format("{}:{}", printable((*config)->path), entry->second.line);
            Value value{entry->second.values, origin, Errc::config};
            if (option->name == opt::store.name)
                for (std::string& url : value.texts) {
                    auto whole = with_secrets(url, folder_of((*config)->path));
                    if (!whole) return std::unexpected(Error{Errc::config, origin + ": " + whole.error().message});
                    url = store_from(*whole, folder_of((*config)->path));
                }
            settings.values_.emplace(option->name, std::move(value));
        }
    }
    return settings.checked(options);
}

Result<Settings> Settings::checked(const std::vector<const Option*>& options) const {
    for (const Option* option : options)
        if (const auto error = check(*option)) return std::unexpected(*error);
    return *this;
}

bool Settings::on_command_line(const Option& option) const {
    const auto value = values_.find(option.name);
    return value != values_.end() && value->second.origin.starts_with("--");
}

bool Settings::in_environment(const Option& option) const {
    const auto value = values_.find(option.name);
    return value != values_.end() && value->second.origin == variable_of(option);
}

std::string Settings::text(const Option& option) const {
    const auto value = values_.find(option.name);
    return value == values_.end() || value->second.texts.empty() ? std::string(option.fallback)
                                                                 : value->second.texts.back();
}

std::vector<std::string> Settings::texts(const Option& option) const {
    const auto value = values_.find(option.name);
    return value == values_.end() ? std::vector<std::string>{} : value->second.texts;
}

bool Settings::on(const Option& option) const { return given(option) && parse_switch(text(option)).value_or(false); }

Result<milliseconds> Settings::duration(const Option& option) const {
    auto time = parse_duration(text(option));
    if (!time) return blamed(option, time.error());
    // Longer than any lease can last is a slip of the pen, and sums with it could overflow.
    if (*time > Ttl::longest)
        return blamed(option,
                      {Errc::usage, fmt::format("{} is more than {}", to_words(*time), to_words(Ttl::longest))});
    return time;
}

Result<std::uint64_t> Settings::number(const Option& option, std::uint64_t most) const {
    const std::string digits = text(option);
    std::uint64_t number = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number);
    if (error != std::errc{} || end != last || number > most)
        return blamed(option,
                      {Errc::usage, fmt::format("\"{}\" is not a number from 0 to {}", printable(digits), most)});
    return number;
}

Result<Ttl> Settings::ttl(const Option& option) const {
    const auto time = parse_duration(text(option));
    if (!time) return blamed(option, time.error());
    const auto ttl = Ttl::of(*time);
    if (!ttl) return blamed(option, ttl.error());
    return ttl;
}

Result<milliseconds> Settings::wait() const {
    if (on(opt::no_wait)) return milliseconds{0};
    if (text(opt::wait) == "forever") return milliseconds::max();
    return duration(opt::wait);
}

Result<std::vector<LockName>> Settings::names(const Option& option) const {
    std::vector<LockName> names;
    for (const std::string& text : texts(option)) {
        auto name = LockName::parse(text);
        if (!name) return blamed(option, name.error());
        names.push_back(std::move(*name));
    }
    return names;
}

Result<Credentials> Settings::lease() const {
    if (!given(opt::lease))
        return fail(Errc::usage,
                    "a lease is missing: set HOLDFAST_LEASE to what acquire printed, or pass it with --lease");
    auto as = Credentials::parse(text(opt::lease));
    if (!as) return blamed(opt::lease, as.error());
    return as;
}

Result<client::Wish> Settings::wish() const {
    client::Wish wish;
    if (given(opt::ttl)) {
        const auto time = duration(opt::ttl);
        if (!time) return std::unexpected(time.error());
        wish.ttl = *time;
    }
    if (given(opt::max_hold)) {
        const auto time = duration(opt::max_hold);
        if (!time) return std::unexpected(time.error());
        wish.max_hold = *time;
    }
    if (given(opt::wait) || given(opt::no_wait)) {
        const auto time = wait();
        if (!time) return std::unexpected(time.error());
        wish.wait = *time;
        wish.wait_is_usual = !on_command_line(opt::wait) && !in_environment(opt::wait);
    }
    auto excluded = names(opt::unless_held);
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
    if (is_ttl) return blamed(opt::ttl, terms.error());
    if (is_hold) return blamed(opt::max_hold, terms.error());
    return terms;
}

bool Settings::may_use_default_store() const {
    const auto lease = variable("HOLDFAST_LEASE");
    // `run` names its store to its child unless that holds a secret; so inside of `run` the lock is elsewhere.
    if (variable("HOLDFAST_LOCK_ID") || variable("HOLDFAST_LEASES")) return false;
    if (!lease || lease->starts_with(variable(std::string(in_default_store)).value_or("\n") + ".")) return true;
    // A command that presents the lease is refused by a store that does not know it, unless it says that this is fine.
    return takes(*command_, opt::lease) && !on(opt::if_held);
}

Result<client::Terms> Settings::terms_for_ttl(const LockName& name) const {
    client::Wish wish;
    if (given(opt::ttl)) {
        const auto time = ttl(opt::ttl);
        if (!time) return std::unexpected(time.error());
        wish.ttl = time->time();
    }
    return terms_for(name, wish);
}

Result<std::vector<std::string>> Settings::store_urls() const {
    auto urls = texts(opt::store);
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
    for (const std::string& url : urls) {
        if (url.starts_with("memory:") && command_ != &bench_command)
            return fail(Errc::config,
                        "memory: ends with this command, so it would keep nobody out; only bench uses it; name another "
                        "store with --store or HOLDFAST_STORE");
        // Whoever can be given a format is given a lease.
        if (takes(*command_, opt::format) && (on(opt::session) || asks_for_session(url)))
            return fail(Errc::usage,
                        fmt::format("what {} grants would end with its session, before anybody could use it; leave "
                                    "{} out, or use run, which stays",
                                    command_->name, on(opt::session) ? "--session" : "session=on"));
    }
    return urls;
}

std::optional<std::string> Settings::store_for_child() const {
    const auto urls = store_urls();
    if (!urls || std::ranges::any_of(*urls, may_hold_secret)) return std::nullopt;
    // The child may change its working directory.
    std::error_code ignored;
    const std::string here = std::filesystem::current_path(ignored).string();
    std::string all;
    for (const std::string& url : *urls) {
        all += (all.empty() ? "" : " ") + as_one_word(store_from(url, here));
    }
    return all;
}

Result<std::string> Settings::store_url() const {
    auto urls = store_urls();
    if (!urls) return std::unexpected(urls.error());
    if (urls->size() > 1)
        return blamed(opt::store, {Errc::usage, "several stores at once are not for this command; name one"});
    return std::move(urls->front());
}

std::optional<Error> Settings::check(const Option& option) const {
    if (!given(option)) return std::nullopt;
    const Value& value = values_.find(option.name)->second;
    const auto bad = [&](const std::string& why) { return blamed(option, {Errc::usage, why}).error(); };
    if (option.takes != Takes::many && value.texts.size() != 1) return bad("one value is expected");
    for (const std::string& text : value.texts) {
        if (text.find('\0') != std::string::npos) return bad("a value contains a NUL byte");
        if (option.takes == Takes::nothing && !parse_switch(text)) return bad("a switch is on or off");
        const auto choices = choices_of(option);
        if (!choices.empty() && std::ranges::find(choices, text) == choices.end())
            return bad(fmt::format("it is one of {}", fmt::join(choices, ", ")));
    }
    return std::nullopt;
}

std::unexpected<Error> Settings::blamed(const Option& option, Error error) const {
    const auto value = values_.find(option.name);
    if (value == values_.end()) return std::unexpected(std::move(error));
    error.message = value->second.origin + ": " + error.message;
    if (value->second.blame == Errc::config) error.code = Errc::config;
    return std::unexpected(std::move(error));
}

}  // namespace holdfast::cli
