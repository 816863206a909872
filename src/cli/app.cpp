#include "cli/app.hpp"

#include "base/os_error.hpp"
#include "cli/context.hpp"
#include "cli/places.hpp"
#include "cli/process_list.hpp"
#include "cli/report.hpp"
#include "cli/startup.hpp"
#include "holdfast/open.hpp"
#include "values/text.hpp"
#include "values/users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr int failed = 125;
constexpr int broken_pipe = 128 + SIGPIPE;

Style plain_style(bool json, bool shell) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    return {.json = json, .shell = shell && !json, .terminal = terminal, .colour = terminal && !variable("NO_COLOR")};
}

Style style_of(const Settings& settings) {
    const std::string format = settings.given(opt::format) ? settings.text(opt::format) : "";
    Style style = plain_style(settings.on(opt::json) || format == "json", format == "sh");
    style.quiet = settings.on(opt::quiet);
    style.verbose = settings.on(opt::verbose);
    style.colour = style.colour && !settings.on(opt::no_color);
    return style;
}

/// Goes on as `successor` where shared libraries are needed: the driver of a server, or the name services that know a
/// user who is in no file. An error if it must, and cannot; without a user's name there is still the number.
std::optional<Error> succeed(Successor successor, const std::vector<std::string>& args, const Settings& settings) {
    const auto urls = settings.store_urls();
    if (urls && std::ranges::any_of(*urls, is_module)) return successor(args);
    if (!local_user_name(geteuid())) (void)successor(args);
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
        if (out.tells_success()) out.note("holdfast: skipped: " + printable(error.message));
        return finish(out, exit);
    }
    report(error, out, context.info(), &context.settings);
    return finish(out, exit);
}

}  // namespace

int run(int argc, char** argv, Successor successor) {
    // The threads of a command hardly allocate, and an arena for each costs more than all of that.
    mallopt(M_ARENA_MAX, 1);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    hide_secrets({argv + 1, argv + argc});
    return run(arguments, host_clock(), successor);
}

int run(const std::vector<std::string>& args, const Clock& clock, Successor successor) {
    const auto prepared = prepare_process();
    Output plain(plain_style(wants_json(args), wants_shell(args)));
    try {
        if (!prepared) return refuse(prepared.error(), plain, row_of(prepared.error().code).exit_status);
        auto line = parse(args);
        if (!line) return refuse(line.error(), plain, row_of(line.error().code).exit_status);
        auto settings = Settings::settle(*line);
        if (!settings) return refuse(settings.error(), plain, row_of(settings.error().code).exit_status);
        if (successor != nullptr)
            if (const auto error = succeed(successor, args, *settings))
                return refuse(*error, plain, row_of(error->code).exit_status);
        return carry_out(std::move(*line), std::move(*settings), clock);
    } catch (const std::exception& error) {
        // A library's exception that nobody expected. What was being done may or may not have happened.
        return refuse({Errc::outcome_unknown, fmt::format("holdfast failed: {}", printable(error.what()))}, plain,
                      failed);
    }
}

}  // namespace holdfast::cli
