#include "docs/session.hpp"

#include "docs/markdown.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <regex>
#include <span>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::docs {
namespace {

constexpr std::string_view any_text = "…";
/// Separates the outputs of the commands of a session. No program prints this byte.
constexpr char separator = '\x1e';
constexpr const char* time_limit = "60";

bool lines_match(std::span<const std::string> patterns, std::span<const std::string> lines) {
    if (patterns.empty()) return lines.empty();
    if (patterns.front() == any_text) {
        for (std::size_t skipped = 0; skipped <= lines.size(); ++skipped)
            if (lines_match(patterns.subspan(1), lines.subspan(skipped))) return true;
        return false;
    }
    return !lines.empty() && line_matches(patterns.front(), lines.front()) &&
           lines_match(patterns.subspan(1), lines.subspan(1));
}

std::string read_all(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<std::vector<Step>> steps_of(const std::vector<std::string>& lines) {
    static const std::regex exit_line(R"(\(exit (\d{1,3})\))");
    std::vector<Step> steps;
    bool in_command = false;
    for (const std::string& line : lines) {
        std::smatch match;
        if (line.starts_with("$ ")) {
            steps.push_back({line.substr(2), {}, 0});
            in_command = true;
        } else if (steps.empty()) {
            return std::nullopt;
        } else if (in_command && (line.starts_with("> ") || line == ">")) {
            steps.back().command += "\n" + line.substr(std::min<std::size_t>(2, line.size()));
        } else {
            in_command = false;
            if (std::regex_match(line, match, exit_line))
                steps.back().exit_status = std::stoi(match[1]);
            else
                steps.back().expected.push_back(line);
        }
    }
    // An empty line before the next command separates the two on the page; it is not output.
    for (Step& step : steps)
        while (!step.expected.empty() && step.expected.back().empty()) step.expected.pop_back();
    if (steps.empty()) return std::nullopt;
    return steps;
}

bool line_matches(std::string_view pattern, std::string_view line) {
    const auto wild = pattern.find(any_text);
    if (wild == std::string_view::npos) return pattern == line;
    if (!line.starts_with(pattern.substr(0, wild))) return false;
    const std::string_view rest = pattern.substr(wild + any_text.size());
    for (std::string_view left = line.substr(wild);; left.remove_prefix(1)) {
        if (line_matches(rest, left)) return true;
        if (left.empty()) return false;
    }
}

bool output_matches(const std::vector<std::string>& patterns, const std::vector<std::string>& lines) {
    return lines_match(patterns, lines);
}

Sandbox::Sandbox(const std::filesystem::path& binary) {
    if (!std::filesystem::exists(binary)) throw std::runtime_error("there is no " + binary.string());
    for (const char* folder : {"bin", "home", "work", "tmp"})
        std::filesystem::create_directory(folder_.path() / folder);
    // A link, so that nothing else of the build folder is on the path.
    std::filesystem::create_symlink(std::filesystem::absolute(binary), folder_.path() / "bin" / "holdfast");
}

Sandbox::Ended Sandbox::bash(const std::string& script, bool stop_at_failure) const {
    const std::filesystem::path& root = folder_.path();
    const auto script_path = root / "script";
    const auto output_path = root / "output";
    std::ofstream(script_path) << script;

    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
        const std::array environment{"PATH=" + (root / "bin").string() + ":/usr/local/bin:/usr/bin:/bin",
                                     "HOME=" + (root / "home").string(), "TMPDIR=" + (root / "tmp").string(),
                                     std::string("LANG=C.UTF-8")};
        clearenv();
        // A configuration that others can write is refused.
        umask(022);
        for (const std::string& variable : environment) {
            const auto equals = variable.find('=');
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
        const int input = open("/dev/null", O_RDONLY);
        const int output = open(output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const bool ready =
            dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2 && chdir((root / "work").c_str()) == 0;
        if (ready) {
            const std::string path = script_path.string();
            // timeout(1) ends the whole process group, so that an example that hangs leaves nothing behind.
            execlp("timeout", "timeout", "-k", "1", time_limit, "bash", stop_at_failure ? "-e" : "+e", path.c_str(),
                   static_cast<char*>(nullptr));
        }
        _exit(127);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for the example");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_all(output_path)};
}

std::string Sandbox::run_script(const std::vector<std::string>& lines) const {
    const Ended ended = bash(fmt::format("{}\n", fmt::join(lines, "\n")), true);
    if (ended.status == 0) return {};
    return fmt::format("the script ended with status {} and printed:\n{}", ended.status, ended.output);
}

std::string Sandbox::run_session(const std::vector<std::string>& lines) const {
    const auto steps = steps_of(lines);
    if (!steps) return "a console block begins with a command after \"$ \"";
    std::string script;
    // One shell for the whole block, so that variables and the working directory last as they do for a reader.
    for (const Step& step : *steps) script += fmt::format("{}\nprintf '\\036%d\\036' $?\n", step.command);
    std::string_view output;
    const Ended ended = bash(script, false);
    output = ended.output;

    for (const Step& step : *steps) {
        const auto printed_end = output.find(separator);
        const auto status_end =
            printed_end == std::string_view::npos ? printed_end : output.find(separator, printed_end + 1);
        if (status_end == std::string_view::npos)
            return fmt::format("$ {}\nnever came back; the rest of the output is:\n{}", step.command, output);
        const std::string printed(output.substr(0, printed_end));
        const int status = std::stoi(std::string(output.substr(printed_end + 1, status_end - printed_end - 1)));
        output.remove_prefix(status_end + 1);
        if (status != step.exit_status)
            return fmt::format("$ {}\nended with status {} instead of {} and printed:\n{}", step.command, status,
                               step.exit_status, printed);
        std::vector<std::string> got = lines_of(printed);
        while (!got.empty() && got.back().empty()) got.pop_back();
        if (!output_matches(step.expected, got))
            return fmt::format("$ {}\nprinted:\n{}\nand the page says:\n{}", step.command, printed,
                               fmt::join(step.expected, "\n"));
    }
    return {};
}

}  // namespace holdfast::docs
