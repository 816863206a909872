#include "cli/parse.hpp"

#include "config/nearest.hpp"
#include "config/switch_word.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

// By hand: setting up a library for this was an eighth of the instructions of a short command.
namespace holdfast::cli {
namespace {

using Args = std::vector<std::string>;

bool is_flag(std::string_view arg) { return arg.size() > 1 && arg.front() == '-' && (arg[1] < '0' || arg[1] > '9'); }

const Option* find_option(const Command& command, std::string_view name, char letter) {
    const auto is_it = [&](const Option& option) {
        return letter == '\0' ? option.name == name : option.letter == letter;
    };
    if (const auto own = std::ranges::find_if(command.options, is_it); own != command.options.end()) return &*own;
    const auto* common = std::ranges::find_if(opt::common, is_it);
    return common == opt::common.end() ? nullptr : common;
}

/// Whether `arg` is a flag of `command` whose value is the next argument.
bool takes_next(const Command& command, std::string_view arg) {
    const Option* option = arg.starts_with("--") ? find_option(command, arg.substr(2), '\0')
                           : arg.size() == 2     ? find_option(command, "", arg[1])
                                                 : nullptr;
    return option != nullptr && option->takes != Takes::nothing;
}

bool takes_next_somewhere(std::string_view arg) {
    return std::ranges::any_of(commands(), [&](const Command* command) { return takes_next(*command, arg); });
}

/// Removes the first argument that is neither a flag nor the value of one, and returns it.
std::string take_word(Args& args) {
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (is_flag(args[i])) {
            if (takes_next_somewhere(args[i])) ++i;
            continue;
        }
        std::string word = std::move(args[i]);
        args.erase(args.begin() + static_cast<std::ptrdiff_t>(i));
        return word;
    }
    return "";
}

std::string meant(std::string_view word, const std::vector<std::string>& known) {
    const std::string near = config::nearest(word, known);
    return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

/// The names that other programs use. The nearest in letters would be wrong: `lock` is not `unlock`.
std::string_view known_elsewhere_as(std::string_view word) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> words{{{"lock", "acquire"},
                                                                                  {"take", "acquire"},
                                                                                  {"list", "status"},
                                                                                  {"show", "status"},
                                                                                  {"get", "status"},
                                                                                  {"exec", "run"},
                                                                                  {"free", "release"},
                                                                                  {"log", "history"},
                                                                                  {"audit", "history"}}};
    const auto* const found = std::ranges::find(words, word, &std::pair<std::string_view, std::string_view>::first);
    return found == words.end() ? "" : found->second;
}

Result<const Command*> take_command(Args& args) {
    const std::string word = take_word(args);
    if (word.empty()) return fail(Errc::usage, "a command is missing");
    if (has_verbs(word)) {
        std::vector<std::string> verbs;
        for (const Command* command : commands())
            if (command->name.starts_with(word + " ")) verbs.emplace_back(command->name.substr(word.size() + 1));
        const std::string verb = take_word(args);
        if (const Command* command = find_command(word, verb); command != nullptr && !verb.empty()) return command;
        return fail(Errc::usage,
                    fmt::format("{} is followed by {}{}", word, fmt::join(verbs, ", "), meant(verb, verbs)));
    }
    if (const Command* command = find_command(word, "")) return command;
    if (const std::string_view ours = known_elsewhere_as(word); !ours.empty())
        return fail(Errc::usage, fmt::format("there is no command \"{}\"; did you mean {}?", word, ours));
    std::vector<std::string> names;
    for (const Command* command : commands()) names.emplace_back(command->name.substr(0, command->name.find(' ')));
    return fail(Errc::usage,
                fmt::format("there is no command \"{}\"{}", printable(word.substr(0, 80)), meant(word, names)));
}

std::unexpected<Error> no_such_flag(const Command& command, std::string_view arg) {
    std::vector<std::string> flags;
    for (const Option* option : options_of(command)) flags.push_back(fmt::format("--{}", option->name));
    const std::string flag(arg.substr(0, arg.find('=')));
    return fail(Errc::usage,
                fmt::format("{} has no flag {}{}", command.name, printable(flag.substr(0, 80)), meant(flag, flags)));
}

/// Reads the flags and words of one command from left to right.
class Reader {
public:
    Reader(CommandLine& line, const Args& args) : line_(line), args_(args) {}

    Result<void> read() {
        while (next_ < args_.size()) {
            const std::string& arg = args_[next_++];
            const auto done = arg.starts_with("--") ? name(arg) : is_flag(arg) ? letters(arg) : word(arg);
            if (!done) return done;
        }
        return {};
    }

private:
    Result<void> word(const std::string& arg) {
        line_.words.push_back(arg);
        return {};
    }

    /// `--name`, `--name value`, `--name=value`.
    Result<void> name(std::string_view arg) {
        const auto equals = arg.find('=');
        const std::string_view flag = arg.substr(0, equals);
        const Option* option = find_option(*line_.command, flag.substr(2), '\0');
        if (option == nullptr || flag == "--") return no_such_flag(*line_.command, arg);
        if (equals != std::string_view::npos) return give(*option, std::string(arg.substr(equals + 1)));
        return option->takes == Takes::nothing ? give(*option, "on") : give_next(*option, flag);
    }

    /// `-q`, `-qv`, `-m value`, `-mvalue`.
    Result<void> letters(std::string_view arg) {
        for (std::size_t i = 1; i < arg.size(); ++i) {
            const Option* option = find_option(*line_.command, "", arg[i]);
            if (option == nullptr) return no_such_flag(*line_.command, arg);
            if (option->takes != Takes::nothing)
                return i + 1 < arg.size() ? give(*option, std::string(arg.substr(i + 1))) : give_next(*option, arg);
            if (auto given = give(*option, "on"); !given) return given;
        }
        return {};
    }

    /// Where a value is missing (`--ttl --json`) the next flag must not become one: such a value is written
    /// `--reason=--x`.
    Result<void> give_next(const Option& option, std::string_view flag) {
        if (next_ == args_.size() || args_[next_].starts_with("--"))
            return fail(Errc::usage, fmt::format("{} needs a value", flag));
        return give(option, args_[next_++]);
    }

    Result<void> give(const Option& option, std::string value) {
        auto& values = line_.given[std::string(option.name)];
        // The last one counts.
        if (option.takes != Takes::many) values.clear();
        values.push_back(std::move(value));
        return {};
    }

    CommandLine& line_;
    const Args& args_;
    std::size_t next_ = 0;
};

/// Whether the words go on where a command to run would begin, as in `run x ls -l`.
bool is_command_without_dashes(const CommandLine& line) {
    return line.command->tail == Tail::command && line.words.size() > line.command->words.size();
}

std::unexpected<Error> dashes_missing(const CommandLine& line) {
    return fail(Errc::usage, fmt::format("put -- before the command: holdfast {} {} -- {}", line.command->name,
                                         printable(line.words.front().substr(0, 80)),
                                         printable(line.words[line.command->words.size()].substr(0, 80)) + " …"));
}

Result<void> check_words(const CommandLine& line) {
    const auto& expected = line.command->words;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (i >= line.words.size()) {
            if (expected[i].need == Word::Need::optional) break;
            return fail(Errc::usage, fmt::format("{} needs {}", line.command->name, expected[i].name));
        }
        const auto choices = config::split_choices(expected[i].choices);
        if (!choices.empty() && std::ranges::find(choices, line.words[i]) == choices.end())
            return fail(Errc::usage, fmt::format("{} is one of {}", expected[i].name, fmt::join(choices, ", ")));
    }
    if (line.words.size() > expected.size())
        return fail(Errc::usage, fmt::format("{} does not take \"{}\"", line.command->name,
                                             printable(line.words[expected.size()].substr(0, 80))));
    return {};
}

/// The last value that `args` give to `option`. A word that is none for a switch is refused later, and is no answer.
std::optional<std::string> last_value(const Args& args, const Option& option) {
    const std::string flag = fmt::format("--{}", option.name);
    const bool is_switch = option.takes == Takes::nothing;
    std::optional<std::string> last;
    for (std::size_t i = 0; i < args.size(); ++i) {
        std::optional<std::string> value;
        if (args[i].starts_with(flag + "=")) value = args[i].substr(flag.size() + 1);
        if (args[i] == flag && is_switch) value = "on";
        if (args[i] == flag && !is_switch && i + 1 < args.size()) value = args[i + 1];
        if (value && (!is_switch || config::parse_switch(*value))) last = std::move(value);
    }
    return last;
}

/// What the command line says of `option` before it is understood.
std::optional<std::string> early_flag(const Args& args, const Option& option) {
    return last_value(Args(args.begin(), std::ranges::find(args, "--")), option);
}

/// What the command line or the variable says of `option` before either is understood. Empty if nothing does.
std::string early_value(const Args& args, const Option& option) {
    Args ours(args.begin(), std::ranges::find(args, "--"));
    if (const auto given = early_flag(args, option)) return *given;
    const char* variable = std::getenv(variable_of(option).c_str());
    if (variable == nullptr) return "";
    // The variable says nothing to commands that have no such flag.
    const auto command = take_command(ours);
    return !command || find_option(**command, option.name, '\0') != nullptr ? variable : "";
}

}  // namespace

Result<CommandLine> parse(const std::vector<std::string>& args) {
    const auto dashes = std::ranges::find(args, "--");
    CommandLine line;

    Args ours(args.begin(), dashes);
    const bool help = std::erase_if(ours, [](const std::string& arg) { return arg == "-h" || arg == "--help"; }) > 0;
    if (std::erase(ours, "--version") > 0) ours.insert(ours.begin(), "version");
    if (help) {
        line.command = &help_command;
        if (wants_json(args)) line.given["json"] = {"on"};
        for (std::string word = take_word(ours); !word.empty() && line.words.size() < 2; word = take_word(ours)) {
            const bool verb = line.words.size() == 1;
            if (verb ? !has_verbs(line.words[0]) : find_command(word, "") == nullptr && !has_verbs(word)) break;
            line.words.push_back(std::move(word));
        }
        return line;
    }

    auto command = take_command(ours);
    if (!command) return std::unexpected(command.error());
    line.command = *command;
    const auto read = Reader(line, ours).read();
    if (dashes == args.end() && is_command_without_dashes(line)) return dashes_missing(line);
    if (!read) return std::unexpected(read.error());
    if (dashes != args.end()) {
        // Words may look like flags there.
        auto& after = line.command->tail == Tail::command ? line.tail : line.words;
        after.insert(after.end(), dashes + 1, args.end());
    }
    if (auto words = check_words(line); !words) return std::unexpected(words.error());
    return line;
}

bool wants_json(const std::vector<std::string>& args) {
    // A format on the command line counts more than a variable.
    const bool format_decides = early_flag(args, opt::format) && !early_flag(args, opt::json);
    const bool json = !format_decides && config::parse_switch(early_value(args, opt::json)).value_or(false);
    return json || early_value(args, opt::format) == "json";
}

bool wants_shell(const std::vector<std::string>& args) { return early_value(args, opt::format) == "sh"; }

}  // namespace holdfast::cli
