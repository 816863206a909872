#include "cli/parse.hpp"

#include "cli/nearest.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

// By hand: what a library for this needs to be set up was an eighth of all that a short command executes.
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
    if (auto read = Reader(line, ours).read(); !read) return std::unexpected(read.error());
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
