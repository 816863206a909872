#include "cli/app.hpp"

#include "base/os_error.hpp"
#include "cli/context.hpp"
#include "cli/process_list.hpp"
#include "cli/report.hpp"
#include "cli/startup.hpp"
#include "config/places.hpp"
#include "holdfast/open.hpp"
#include "stores/open_store.hpp"
#include "values/text.hpp"
#include "values/users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr int failed = 125;
constexpr int broken_pipe = 128 + SIGPIPE;

/// The width of the terminal on standard output; COLUMNS counts more, as for other programs. 0 where nobody knows.
std::size_t columns_of_terminal() {
    if (const auto set = config::variable("COLUMNS")) {
        std::size_t columns = 0;
        const auto [end, error] = std::from_chars(set->data(), set->data() + set->size(), columns);
        if (error == std::errc{} && end == set->data() + set->size()) return columns;
    }
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Style plain_style(bool json, bool shell) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    return {.json = json,
            .shell = shell && !json,
            .terminal = terminal,
            .colour = terminal && !config::variable("NO_COLOR"),
            .columns = terminal ? columns_of_terminal() : 0};
}

/// Whether --format comes from a source of higher rank than --json: the command line, the environment, the file. A
/// script that evaluates `--format sh` must not get JSON because of an exported variable.
bool format_decides(const Settings& settings) {
    if (!settings.given(opt::format) || settings.on_command_line(opt::json)) return false;
    return settings.on_command_line(opt::format) || !settings.in_environment(opt::json);
}

Style style_of(const Settings& settings) {
    const std::string format = settings.given(opt::format) ? settings.text(opt::format) : "";
    const bool json = settings.on(opt::json) && !format_decides(settings);
    Style style = plain_style(json || format == "json", format == "sh");
    style.quiet = settings.on(opt::quiet);
    style.verbose = settings.on(opt::verbose);
    style.colour = style.colour && !settings.on(opt::no_color);
    return style;
}

/// The driver of a server needs shared libraries, and so do the name services that know a user who is in no file. An
/// error if the full program is needed for the store and cannot be run; a user without a name is shown by number.
std::optional<Error> exec_full_program_if_needed(ExecFullProgram exec_full_program,
                                                 const std::vector<std::string>& args, const Command& command,
                                                 const Settings& settings) {
    if (exec_full_program == nullptr) return std::nullopt;
    if (command.loads != Loads::nothing) return exec_full_program(args);
    const auto urls = settings.store_urls();
    if (urls && std::ranges::any_of(*urls, stores::is_module)) return exec_full_program(args);
    for (const Option& names_database : {opt::database, opt::fence})
        if (std::ranges::any_of(settings.texts(names_database), stores::is_module)) return exec_full_program(args);
    if (!local_user_name(geteuid())) (void)exec_full_program(args);
    return std::nullopt;
}

int finish(Output& out, int status) {
    // A script that evaluates nothing would go on without the lock.
    if (out.style().shell && !out.has_lines()) out.line(exit_for_eval(status));
    const int error = out.flush();
    if (error == 0) return status;
    if (error == EPIPE) return broken_pipe;
    Output::warn(fmt::format("holdfast: cannot write to standard output: {}", base::os_message(error)));
    return failed;
}

int refuse(const Error& error, Output& out, int status) {
    report(error, out, std::nullopt);
    return finish(out, status);
}

int carry_out(CommandLine line, Settings settings, const Clock& clock) {
    Output out(style_of(settings));
    const auto conflict = settings.number(opt::conflict_exit_code, 255);
    if (!conflict) return refuse(conflict.error(), out, row_of(conflict.error().code).exit_status);

    const Command& command = *line.command;
    Context context(std::move(line), std::move(settings), out, clock);
    const Result<int> status = command.run(context);
    if (status) return finish(out, *status);
    const Error& error = status.error();
    const int exit = exit_status(error, context.settings);
    if (exit == 0 && !out.style().json) {
        note_skipped(out, error);
        return finish(out, exit);
    }
    report(error, out, context.info(), &context.settings);
    return finish(out, exit);
}

}  // namespace

int run(int argc, char** argv, ExecFullProgram exec_full_program) {
    // The threads of a command hardly allocate, and an arena for each costs more than all of that.
    mallopt(M_ARENA_MAX, 1);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    hide_secrets({argv + 1, argv + argc});
    return run(arguments, host_clock(), exec_full_program);
}

int run(const std::vector<std::string>& args, const Clock& clock, ExecFullProgram exec_full_program) {
    const auto prepared = prepare_process();
    Output plain(plain_style(wants_json(args), wants_shell(args)));
    try {
        if (!prepared) return refuse(prepared.error(), plain, row_of(prepared.error().code).exit_status);
        auto line = parse(args);
        if (!line) return refuse(line.error(), plain, row_of(line.error().code).exit_status);
        auto settings = settle(*line);
        if (!settings) return refuse(settings.error(), plain, row_of(settings.error().code).exit_status);
        if (const auto error = exec_full_program_if_needed(exec_full_program, args, *line->command, *settings))
            return refuse(*error, plain, row_of(error->code).exit_status);
        return carry_out(std::move(*line), std::move(*settings), clock);
    } catch (const std::exception& error) {
        // An unexpected exception of a library. The outcome of the command is unknown.
        return refuse({Errc::outcome_unknown, fmt::format("holdfast failed: {}", printable(error.what()))}, plain,
                      failed);
    }
}

}  // namespace holdfast::cli
