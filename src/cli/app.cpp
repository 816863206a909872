#include "cli/app.hpp"

#include "base/os_error.hpp"
#include "cli/context.hpp"
#include "cli/places.hpp"
#include "cli/report.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr int failed = 125;
constexpr int broken_pipe = 128 + SIGPIPE;

Style plain_style(bool json) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    return {.json = json, .terminal = terminal, .colour = terminal && !variable("NO_COLOR")};
}

Style style_of(const Settings& settings) {
    Style style =
        plain_style(settings.on(opt::json) || (settings.given(opt::format) && settings.text(opt::format) == "json"));
    style.quiet = settings.on(opt::quiet);
    style.verbose = settings.on(opt::verbose);
    style.colour = style.colour && !settings.on(opt::no_color);
    return style;
}

int finish(Output& out, int status) {
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
        out.note("holdfast: skipped: " + printable(error.message));
        return finish(out, exit);
    }
    report(error, out, context.info());
    return finish(out, exit);
}

}  // namespace

int run(const std::vector<std::string>& args, const Clock& clock) {
    // A closed pipe is noticed where we write, because a lease that nobody can read must be given back.
    std::signal(SIGPIPE, SIG_IGN);
    Output plain(plain_style(wants_json(args)));
    try {
        auto line = parse(args);
        if (!line) return refuse(line.error(), plain, row_of(line.error().code).exit_status);
        auto settings = Settings::settle(*line);
        if (!settings) return refuse(settings.error(), plain, row_of(settings.error().code).exit_status);
        return carry_out(std::move(*line), std::move(*settings), clock);
    } catch (const std::exception& error) {
        // A library's exception that nobody expected. What was being done may or may not have happened.
        return refuse({Errc::outcome_unknown, fmt::format("holdfast failed: {}", printable(error.what()))}, plain,
                      failed);
    }
}

}  // namespace holdfast::cli
