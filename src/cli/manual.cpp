#include "cli/help.hpp"
#include "holdfast/error.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

/// `text` as troff reads it: nothing in it is a request or an escape.
std::string roff(std::string_view text) {
    std::string safe;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool line_start = i == 0 || text[i - 1] == '\n';
        if (line_start && (text[i] == '.' || text[i] == '\'')) safe += "\\&";
        if (text[i] == '\\')
            safe += "\\e";
        else if (text[i] == '-')
            safe += "\\-";
        else
            safe += text[i];
    }
    return safe;
}

/// Paragraphs, where the text has an empty line.
std::string paragraphs(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto end = text.find("\n\n");
        result += roff(text.substr(0, end)) + "\n";
        if (end == std::string_view::npos) break;
        result += ".PP\n";
        text.remove_prefix(end + 2);
    }
    return result;
}

std::string option_entry(const Option& option) {
    const std::string letter = option.letter == '\0' ? "" : fmt::format("\\-{}, ", option.letter);
    std::string entry = fmt::format(".TP\n.B {}{}{}{}\n{}", letter, roff(fmt::format("--{}", option.name)),
                                    option.value.empty() ? "" : " ", roff(option.value), roff(option.help));
    if (!option.fallback.empty()) entry += fmt::format(" Default: {}.", roff(option.fallback));
    if (option.from != From::command_line) entry += fmt::format(" Environment: {}.", variable_of(option));
    if (option.from == From::anywhere) entry += fmt::format(" Configuration: {}.", key_of(option));
    return entry + "\n";
}

}  // namespace

std::string manual_page() {
    std::string page = fmt::format(
        ".TH HOLDFAST 1 \"\" \"holdfast {}\" \"User Commands\"\n.SH NAME\nholdfast \\- leases with fencing tokens on "
        "the store you already run\n"
        ".SH SYNOPSIS\n.B holdfast\n.I COMMAND\n[flags]\n.SH DESCRIPTION\n"
        "Holdfast makes sure that only one process at a time does the dangerous thing. A lock is a name; who holds it "
        "has a "
        "lease that runs out unless it is renewed, and a token that rises with every grant.\n.SH COMMANDS\n",
        HOLDFAST_VERSION);
    for (const Command* command : commands()) {
        page += fmt::format(".SS {}\n{}.\n", roff(usage_of(*command)), roff(command->summary));
        if (!command->aliases.empty()) page += fmt::format("Also called: {}.\n", roff(command->aliases));
        if (!command->details.empty()) page += ".PP\n" + paragraphs(command->details);
        for (const Option& option : command->options) page += option_entry(option);
    }
    page += ".SH FLAGS OF EVERY COMMAND\n";
    for (const Option& option : opt::common) page += option_entry(option);
    page += ".SH EXIT STATUS\n.TP\n.B 0\nDone.\n";
    for (const ErrorRow& row : error_table())
        page += fmt::format(".TP\n.B {}\n{}: {}\n", row.exit_status, row.name, roff(row.meaning));
    page +=
        ".TP\n.B 125\nHoldfast failed in a way that none of these describes.\n.TP\n.B 128+n\nSignal n ended the "
        "command.\n";
    page +=
        ".SH FILES\n.TP\n.B holdfast.toml\nThe configuration, found upward from the working directory, then in "
        "$XDG_CONFIG_HOME/holdfast and in /etc/holdfast.\n";
    return page;
}

}  // namespace holdfast::cli
