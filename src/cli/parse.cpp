#include "cli/parse.hpp"

#include "cli/nearest.hpp"
#include "values/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

// The only file that knows CLI11: it is slow to compile. It parses the options of the one command that
// was asked for; commands and words are ours.
namespace holdfast::cli {
namespace {

using Args = std::vector<std::string>;

bool is_flag(std::string_view arg) { return arg.size() > 1 && arg.front() == '-' && (arg[1] < '0' || arg[1] > '9'); }

/// Whether `arg` is a flag of `command` whose value is the next argument.
bool takes_next(const Command& command, std::string_view arg) {
    return std::ranges::any_of(options_of(command), [&](const Option* option) {
        if (option->takes == Takes::nothing) return false;
        return arg == fmt::format("--{}", option->name) ||
               (option->letter != '\0' && arg == fmt::format("-{}", option->letter));
    });
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
    const std::string near = nearest(word, known);
    return near.empty() ? "" : fmt::format("; did you mean {}?", near);
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
    std::vector<std::string> names;
    for (const Command* command : commands()) names.emplace_back(command->name.substr(0, command->name.find(' ')));
    return fail(Errc::usage,
                fmt::format("there is no command \"{}\"{}", printable(word.substr(0, 80)), meant(word, names)));
}

Result<void> no_unknown_flags(const Command& command, const Args& rest) {
    const auto unknown = std::ranges::find_if(rest, is_flag);
    if (unknown == rest.end()) return {};
    std::vector<std::string> flags;
    for (const Option* option : options_of(command)) flags.push_back(fmt::format("--{}", option->name));
    const std::string flag = unknown->substr(0, unknown->find('='));
    return fail(Errc::usage,
                fmt::format("{} has no flag {}{}", command.name, printable(flag.substr(0, 80)), meant(flag, flags)));
}

Result<void> parse_options(CommandLine& line, const Args& args) {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::map<const Option*, CLI::Option*> parsed;
    for (const Option* option : options_of(*line.command)) {
        const std::string names =
            (option->letter == '\0' ? "" : fmt::format("-{},", option->letter)) + fmt::format("--{}", option->name);
        CLI::Option* added = option->takes == Takes::nothing ? app.add_flag(names) : app.add_option(names);
        // A value in brackets would otherwise be taken for a list.
        added->allow_extra_args(false);
        added->multi_option_policy(option->takes == Takes::many ? CLI::MultiOptionPolicy::TakeAll
                                                                : CLI::MultiOptionPolicy::TakeLast);
        parsed.emplace(option, added);
    }
    try {
        app.parse(Args(args.rbegin(), args.rend()));
    } catch (const CLI::ParseError& error) {
        // Its words name flags only, never the values.
        return fail(Errc::usage, printable(error.what()));
    }
    for (const auto& [option, result] : parsed) {
        if (result->count() == 0) continue;
        Args values = result->results();
        if (option->takes != Takes::many) values = {values.back()};
        if (option->takes == Takes::nothing) values = {values.back() == "false" || values.back() == "0" ? "off" : "on"};
        line.given.emplace(option->name, std::move(values));
    }
    line.words = app.remaining();
    return no_unknown_flags(*line.command, line.words);
}

Result<void> check_words(const CommandLine& line) {
    const auto& expected = line.command->words;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (i >= line.words.size()) {
            if (expected[i].need == Word::Need::optional) break;
            return fail(Errc::usage, fmt::format("{} needs {}", line.command->name, expected[i].name));
        }
        const Option choice{.name = expected[i].name, .choices = expected[i].choices};
        const auto choices = choices_of(choice);
        if (!choices.empty() && std::ranges::find(choices, line.words[i]) == choices.end())
            return fail(Errc::usage, fmt::format("{} is one of {}", expected[i].name, fmt::join(choices, ", ")));
    }
    if (line.words.size() > expected.size())
        return fail(Errc::usage, fmt::format("{} does not take \"{}\"", line.command->name,
                                             printable(line.words[expected.size()].substr(0, 80))));
    return {};
}

/// `--reason=` has an empty value; the parser would take the next argument for it. And where a value is
/// missing (`--ttl --json`) the next flag must not become one: such a value is written `--reason=--x`.
Result<Args> with_values_in_place(const Command& command, const Args& args) {
    Args split;
    for (std::size_t i = 0; i < args.size(); ++i) {
        const std::string& arg = args[i];
        const bool empty_value =
            arg.starts_with("--") && arg.ends_with("=") && takes_next(command, arg.substr(0, arg.size() - 1));
        split.push_back(empty_value ? arg.substr(0, arg.size() - 1) : arg);
        if (empty_value) split.emplace_back();
        if (!takes_next(command, arg)) continue;
        if (i + 1 == args.size() || args[i + 1].starts_with("--")) return fail(Errc::usage, arg + " needs a value");
        split.push_back(args[++i]);
    }
    return split;
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
    const auto placed = with_values_in_place(*line.command, ours);
    if (!placed) return std::unexpected(placed.error());
    if (auto options = parse_options(line, *placed); !options) return std::unexpected(options.error());
    if (dashes != args.end()) {
        // Words may look like flags there.
        auto& after = line.command->tail == Tail::command ? line.tail : line.words;
        after.insert(after.end(), dashes + 1, args.end());
    }
    if (auto words = check_words(line); !words) return std::unexpected(words.error());
    return line;
}

bool wants_json(const std::vector<std::string>& args) {
    const auto end = std::ranges::find(args, "--");
    const char* variable = std::getenv("HOLDFAST_JSON");
    const std::string_view text = variable == nullptr ? "" : variable;
    return std::find(args.begin(), end, "--json") != end || text == "on" || text == "true" || text == "1" ||
           text == "yes";
}

}  // namespace holdfast::cli
