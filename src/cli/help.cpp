#include "cli/help.hpp"

#include "cli/context.hpp"
#include "json/store.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr std::size_t width = 100;

/// `text` in lines of at most `width`, each after the first begun with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent) {
    std::string lines;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::size_t end = text.find_first_of(" \n");
        const std::string_view word = text.substr(0, end);
        const bool breaks = end != std::string_view::npos && text[end] == '\n';
        if (column > indent && column + 1 + word.size() > width) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        }
        if (column > indent) lines += ' ';
        lines += word;
        column += word.size() + 1;
        if (breaks) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        }
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::string option_lines(const Option& option) {
    constexpr std::size_t column = 34;
    std::string text = fmt::format("  {}", spelling_of(option));
    text += text.size() + 2 > column ? "\n" + std::string(column, ' ') : std::string(column - text.size(), ' ');
    std::string help(option.help);
    if (!option.fallback.empty()) help += fmt::format(" Default: {}.", option.fallback);
    if (option.takes == Takes::many) help += " Can be repeated.";
    return text + wrapped(help, column) + "\n";
}

constexpr Option man{
    {"man", Takes::nothing, "", "", From::command_line}, '\0', "", "Print the manual page, for: man -l -"};
constexpr std::array words{Word{"COMMAND", Word::Need::optional}, Word{"VERB", Word::Need::optional}};
constexpr std::array help_options{man};

Result<std::string> text_for(const Context& context) {
    const auto& asked = context.line.words;
    if (context.settings.on(man)) return manual_page();
    if (asked.empty()) return overview();
    if (asked.size() == 1 && has_verbs(asked[0])) {
        std::string text;
        for (const Command* command : commands())
            if (command->name.starts_with(asked[0] + " ")) text += (text.empty() ? "" : "\n") + help_for(*command);
        return text;
    }
    const Command* command = find_command(asked[0], asked.size() > 1 ? asked[1] : "");
    if (command == nullptr)
        return fail(Errc::usage,
                    fmt::format("there is no command \"{}\"", printable(fmt::format("{}", fmt::join(asked, " ")))));
    return help_for(*command);
}

Result<int> run(Context& context) {
    const auto text = text_for(context);
    if (!text) return std::unexpected(text.error());
    if (context.out.style().json) {
        context.out.document(json::help(*text).done());
    } else {
        context.out.line(text->ends_with('\n') ? text->substr(0, text->size() - 1) : *text);
    }
    return 0;
}

constexpr std::array shells{Word{"SHELL", Word::Need::required, "bash|zsh|fish"}};

Result<int> run_completion(Context& context) {
    const std::string text = completion_for(context.line.words.front());
    if (context.out.style().json) {
        context.out.document(json::completion(text).done());
    } else {
        context.out.line(text.substr(0, text.size() - 1));
    }
    return 0;
}

}  // namespace

std::string usage_of(const Command& command) {
    std::string text = fmt::format("holdfast {}", command.name);
    for (const Word& word : command.words) {
        const std::string_view name = word.choices.empty() ? word.name : word.choices;
        text += word.need == Word::Need::required ? fmt::format(" {}", name) : fmt::format(" [{}]", name);
    }
    return text + " [flags]" + (command.tail == Tail::command ? " -- CMD ARG..." : "");
}

std::string overview() {
    std::string text =
        "Holdfast makes sure that only one process at a time does the dangerous thing.\n\n"
        "Usage: holdfast COMMAND [flags]\n\nCommands:\n";
    for (const Command* command : commands()) text += fmt::format("  {:<18} {}\n", command->name, command->summary);
    text += "\nFlags of every command:\n";
    for (const Option& option : opt::common) text += option_lines(option);
    return text +
           "\nEach flag has an environment variable, such as HOLDFAST_STORE, and most have a key in holdfast.toml.\n"
           "Durations: 500ms, 30s, 5m, 1h30m, 2d. More: holdfast help COMMAND.\n";
}

std::string help_for(const Command& command) {
    std::string text = fmt::format("{}\n\nUsage: {}\n", command.summary, usage_of(command));
    if (!command.aliases.empty()) text += fmt::format("Also called: {}\n", command.aliases);
    if (!command.details.empty()) text += "\n" + wrapped(command.details, 0) + "\n";
    if (!command.options.empty()) text += "\nFlags:\n";
    for (const Option& option : command.options) text += option_lines(option);
    text += "\nFlags of every command:\n";
    for (const Option& option : opt::common) text += option_lines(option);
    return text;
}

constinit const Command help_command{"help", "", "Explain a command", "", words, help_options, run};

constinit const Command completion_command{
    "completion",
    "",
    "Print a script for the shell to complete commands",
    "Example: holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast",
    shells,
    {},
    run_completion};

}  // namespace holdfast::cli
