#include "cli/settings.hpp"

#include "cli/places.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr Option store_file{"store-file", '\0', Takes::one, "F", ""};

/// `skip` and `fail` because the switch `--if-held` of release shares its variable with acquire's.
std::optional<bool> parse_switch(std::string_view text) {
    constexpr std::array yes{"on", "true", "yes", "1", "skip"};
    constexpr std::array no{"off", "false", "no", "0", "fail"};
    if (std::ranges::find(yes, text) != yes.end()) return true;
    if (std::ranges::find(no, text) != no.end()) return false;
    return std::nullopt;
}

std::string folder_of(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::absolute(path, ignored).parent_path().string();
}

}  // namespace

Result<Settings> Settings::settle(const CommandLine& line) {
    Settings settings;
    for (const auto& [name, texts] : line.given) settings.values_.emplace(name, Value{texts, "--" + name, Errc::usage});
    const auto options = options_of(*line.command);
    for (const Option* option : options) {
        const auto value = option->from == From::command_line ? std::nullopt : variable(variable_of(*option));
        if (value)
            settings.values_.try_emplace(std::string(option->name), Value{{*value}, variable_of(*option), Errc::usage});
    }
    // The command line and the environment alone name the file.
    const auto named = settings.given(opt::config) ? std::optional(settings.text(opt::config)) : std::nullopt;
    const auto config = read_config(named);
    if (!config) return std::unexpected(config.error());
    if (!settings.given(opt::store))
        if (const auto path = variable(variable_of(store_file))) {
            const auto url = read_secret(*path);
            if (!url) return std::unexpected(url.error());
            settings.values_.emplace(opt::store.name, Value{{*url}, variable_of(store_file), Errc::config});
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
    for (const Option* option : options)
        if (const auto error = settings.check(*option)) return std::unexpected(*error);
    return settings;
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
    }
    auto excluded = names(opt::unless_held);
    if (!excluded) return std::unexpected(excluded.error());
    wish.unless_held = std::move(*excluded);
    return wish;
}

Result<client::Terms> Settings::terms_for(const LockName& name) const {
    const auto wished = wish();
    if (!wished) return std::unexpected(wished.error());
    auto terms = client::terms_for(name, policies_, *wished);
    // A ttl outside the limits is blamed on where it stands.
    if (!terms && !given(opt::ttl)) return terms;
    if (!terms) return blamed(opt::ttl, terms.error());
    return terms;
}

Result<std::vector<std::string>> Settings::store_urls() const {
    auto urls = texts(opt::store);
    if (!urls.empty()) return urls;
    auto usual = default_store();
    if (!usual) return std::unexpected(usual.error());
    return std::vector{std::move(*usual)};
}

std::optional<std::string> Settings::store_for_child() const {
    const auto urls = store_urls();
    if (!urls || urls->size() != 1 || in_environment(opt::store)) return std::nullopt;
    const std::string& url = urls->front();
    // An @ may stand behind a password, and a parameter may be one.
    if (url.find('@') != std::string::npos || url.find("password") != std::string::npos) return std::nullopt;
    // The child may change its working directory.
    std::error_code ignored;
    return store_from(url, std::filesystem::current_path(ignored).string());
}

Result<std::string> Settings::store_url() const {
    const auto urls = texts(opt::store);
    if (urls.size() > 1)
        return blamed(opt::store, {Errc::usage, "several stores at once are not for this command; name one"});
    if (urls.empty()) return default_store();
    return urls.front();
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
