#include "cli/settle.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

std::vector<std::string> known_keys() {
    std::vector<std::string> keys;
    for (const Command* command : commands())
        for (const Option* option : options_of(*command))
            if (option->from == From::anywhere) keys.push_back(key_of(*option));
    return keys;
}

/// Commands that say something of Holdfast itself. They work also where the configuration does not.
bool reads_configuration(const Command& command) {
    return &command != &help_command && &command != &completion_command && &command != &version_command;
}

bool takes(const Command& command, const Option& option) {
    return std::ranges::find(command.options, option.name, &Option::name) != command.options.end();
}

}  // namespace

Result<Settings> settle(const CommandLine& line) {
    const Command& command = *line.command;
    config::Purpose purpose{.name = command.name};
    for (const Option& option : command.options) purpose.settings.push_back(&option);
    for (const Option& option : opt::common) purpose.settings.push_back(&option);
    purpose.known_keys = reads_configuration(command) ? known_keys : nullptr;
    // The answer of an operator goes on without the lease.
    purpose.presents_lease =
        takes(command, opt::lease) && &command != &override_approve_command && &command != &override_deny_command;
    // A command that can be told how to print a lease is given one, and a daemon gives them to its clients.
    purpose.hands_lease_on = takes(command, opt::format) || command.loads == Loads::daemon;
    purpose.may_use_memory = &command == &bench_command;
    return Settings::settle(purpose, line.given);
}

}  // namespace holdfast::cli
