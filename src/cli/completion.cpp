#include "cli/help.hpp"

#include <fmt/format.h>

#include <set>

namespace holdfast::cli {
namespace {

/// What can follow in a shell: a command's words, and the flags it takes.
struct Entry {
    std::string_view first;   ///< `override`
    std::string_view second;  ///< `request`
    std::string_view summary;
    std::string flags{};    ///< `--ttl --wait …`
    std::string choices{};  ///< Of its first word: `bash zsh fish`.
};

std::string spaced(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string flags_of(const Command& command) {
    std::string flags;
    for (const Option* option : options_of(command)) flags += fmt::format("--{} ", option->name);
    return flags + "--help";
}

Entry entry_of(const Command& command, std::string_view name) {
    const auto space = name.find(' ');
    Entry entry{name.substr(0, space), space == std::string_view::npos ? "" : name.substr(space + 1), command.summary};
    entry.flags = flags_of(command);
    if (!command.words.empty()) entry.choices = spaced(config::split_choices(command.words.front().choices));
    return entry;
}

/// All commands under all their names.
std::vector<Entry> entries() {
    std::vector<Entry> all;
    for (const Command* command : commands()) {
        all.push_back(entry_of(*command, command->name));
        for (std::string_view rest = command->aliases; !rest.empty();) {
            const std::string_view alias = rest.substr(0, rest.find(' '));
            all.push_back(entry_of(*command, alias));
            rest.remove_prefix(std::min(alias.size() + 1, rest.size()));
        }
    }
    return all;
}

std::string first_words() {
    std::string words;
    std::string_view last;
    for (const Entry& entry : entries()) {
        if (entry.first != last) words += fmt::format("{}{}", words.empty() ? "" : " ", entry.first);
        last = entry.first;
    }
    return words;
}

std::string verbs_of(std::string_view first) {
    std::string verbs;
    for (const Entry& entry : entries())
        if (entry.first == first && !entry.second.empty())
            verbs += fmt::format("{}{}", verbs.empty() ? "" : " ", entry.second);
    return verbs;
}

/// The flags of everything that begins with `first`, each once.
std::string flags_after(std::string_view first) {
    std::set<std::string_view> seen;
    std::string flags;
    const auto all = entries();
    for (const Entry& entry : all) {
        if (entry.first != first) continue;
        for (std::string_view rest = entry.flags; !rest.empty();) {
            const std::string_view flag = rest.substr(0, rest.find(' '));
            if (seen.insert(flag).second) flags += fmt::format("{}{}", flags.empty() ? "" : " ", flag);
            rest.remove_prefix(std::min(flag.size() + 1, rest.size()));
        }
    }
    return flags;
}

/// Names of held locks come from the program itself, and quietly nothing when that fails. Anybody may have chosen them,
/// so a shell must never evaluate them: neither while it completes nor when the completed line is run. One that begins
/// with a dash would become a flag, so it is left out.
constexpr std::string_view held_names = "holdfast status --no-color --json=off 2>/dev/null | cut -f1 | sed '/^-/d'";

/// Puts a backslash before every letter that means something to bash, whatever else surrounds it. Not printf %q, whose
/// $'…' protects nothing where a quote is already open. Not compgen -W, which evaluates its words.
constexpr std::string_view quoted_for_bash = R"(LC_ALL=C sed 's/[][ !"#$&'\''()*;<>?\\^`{|}~]/\\&/g')";

std::string bash() {
    std::string text =
        "# bash completion for holdfast\n"
        "_holdfast() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} first=${COMP_WORDS[1]} flags='' words=''\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
    text += fmt::format(
        "        mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n        return\n    fi\n    case $first in\n",
        first_words());
    std::set<std::string_view> done;
    const auto all = entries();
    for (const Entry& entry : all) {
        if (!done.insert(entry.first).second) continue;
        const std::string words = entry.second.empty() ? entry.choices : verbs_of(entry.first);
        text += fmt::format("        {}) flags='{}' words='{}' ;;\n", entry.first, flags_after(entry.first), words);
    }
    text +=
        "    esac\n"
        "    case $cur in\n"
        "        -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\") ;;\n"
        "        *)\n"
        "            if [ -n \"$words\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
        "                mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
        "            else\n"
        "                local name\n"
        "                while IFS= read -r name; do\n"
        "                    [[ $name == \"$cur\"* ]] && COMPREPLY+=(\"$name\")\n";
    text += fmt::format("                done < <({} | {})\n", held_names, quoted_for_bash);
    return text + "            fi ;;\n    esac\n}\ncomplete -F _holdfast holdfast\n";
}

std::string zsh() {
    std::string text =
        "#compdef holdfast\n# zsh completion for holdfast\n_holdfast() {\n    local -a flags verbs\n    if (( CURRENT "
        "== 2 )); then\n        verbs=(\n";
    std::set<std::string_view> listed;
    const auto all = entries();
    for (const Entry& entry : all)
        if (listed.insert(entry.first).second) text += fmt::format("            '{}:{}'\n", entry.first, entry.summary);
    text += "        )\n        _describe command verbs\n        return\n    fi\n    case $words[2] in\n";
    // Not called `words`, which is zsh's own array of the command line.
    std::set<std::string_view> done;
    for (const Entry& entry : all) {
        if (!done.insert(entry.first).second) continue;
        const std::string verbs = entry.second.empty() ? entry.choices : verbs_of(entry.first);
        text += fmt::format("        {}) flags=({}) verbs=({}) ;;\n", entry.first, flags_after(entry.first), verbs);
    }
    text +=
        "    esac\n    if [[ $PREFIX == -* ]]; then\n        compadd -- $flags\n    elif (( CURRENT == 3 && $#verbs "
        ")); then\n        compadd -- $verbs\n    else\n";
    text += fmt::format("        compadd -- ${{(f)\"$({})\"}}\n", held_names);
    return text + "    fi\n}\ncompdef _holdfast holdfast\n";
}

std::string fish() {
    std::string text = "# fish completion for holdfast\ncomplete -c holdfast -f\n";
    std::set<std::string_view> listed;
    const auto all = entries();
    for (const Entry& entry : all) {
        if (!listed.insert(entry.first).second) continue;
        text +=
            fmt::format("complete -c holdfast -n __fish_use_subcommand -a {} -d '{}'\n", entry.first, entry.summary);
        const std::string seen = fmt::format("'__fish_seen_subcommand_from {}'", entry.first);
        const std::string words = entry.second.empty() ? entry.choices : verbs_of(entry.first);
        if (!words.empty()) text += fmt::format("complete -c holdfast -n {} -a '{}'\n", seen, words);
    }
    std::set<std::string> flags_listed;
    for (const Command* command : commands()) {
        const std::string first(command->name.substr(0, command->name.find(' ')));
        const std::string names = first + (command->aliases.empty() ? "" : " " + std::string(command->aliases));
        for (const Option* option : options_of(*command)) {
            if (!flags_listed.insert(first + " " + std::string(option->name)).second) continue;
            const std::string letter = option->letter == '\0' ? "" : fmt::format(" -s {}", option->letter);
            text += fmt::format("complete -c holdfast -n '__fish_seen_subcommand_from {}' -l {}{}{} -d '{}'\n", names,
                                option->name, letter, option->takes == Takes::nothing ? "" : " -x", option->help);
        }
    }
    return text;
}

}  // namespace

std::string completion_for(std::string_view shell) {
    if (shell == "bash") return bash();
    return shell == "zsh" ? zsh() : fish();
}

}  // namespace holdfast::cli
