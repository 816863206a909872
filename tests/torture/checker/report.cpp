#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace checker {
namespace {

constexpr std::size_t context = 20;

void surroundings(const History& history, std::size_t line, std::string& out) {
    if (line == 0) return;
    const std::size_t first = line > context ? line - context : 1;
    const std::size_t last = std::min(line + context, history.lines.size());
    for (std::size_t at = first; at <= last; ++at)
        fmt::format_to(std::back_inserter(out), "{} {:>7} {}\n", at == line ? '>' : ' ', at, history.lines[at - 1]);
}

double percentile(std::vector<double> values, double share) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

std::string report_on(const History& history, const Verdict& verdict) {
    std::string out = fmt::format("checker: seed {} on {}\n", history.seed, history.store);
    const auto print = std::back_inserter(out);
    for (const auto& [what, count] : verdict.counts)
        if (count > 0) fmt::format_to(print, "  {:<52} {:>9}\n", what, count);
    for (const auto& [kind, count] : verdict.injected)
        fmt::format_to(print, "  fault {:<46} {:>9}, {} of them bit\n", kind, count, verdict.bitten.at(kind));
    for (const auto& [what, values] : verdict.times)
        fmt::format_to(print, "  {}: p50 {:.0f} ms, p99 {:.0f} ms, most {:.0f} ms\n", what, percentile(values, 0.5),
                       percentile(values, 0.99), percentile(values, 1));
    if (const auto lost = verdict.counts.find("lost updates"); lost != verdict.counts.end())
        fmt::format_to(print, "  {:.1f} % of the acknowledged writes were lost\n",
                       100.0 * static_cast<double>(lost->second) /
                           static_cast<double>(std::max<std::uint64_t>(verdict.counts.at("writes acknowledged"), 1)));

    std::map<std::string, std::size_t> broken;
    for (const Violation& violation : verdict.violations) ++broken[violation.check];
    for (const auto& [check, count] : broken) fmt::format_to(print, "{}: {} violations\n", check, count);
    if (!verdict.violations.empty()) {
        const Violation& first = verdict.violations.front();
        fmt::format_to(print, "the first, with seed {}: {}: {}\n", history.seed, first.check, first.what);
        surroundings(history, first.first_line, out);
        fmt::format_to(print, "and\n");
        surroundings(history, first.second_line, out);
    }
    if (!verdict.missing.empty())
        fmt::format_to(print, "never bit, so this run proves nothing about them: {}\n",
                       fmt::join(verdict.missing, ", "));
    if (exit_status_of(verdict) == 0) fmt::format_to(print, "C1 to C10: no violation\n");
    return out;
}

int exit_status_of(const Verdict& verdict) {
    if (!verdict.violations.empty()) return 1;
    return verdict.missing.empty() ? 0 : 3;
}

}  // namespace checker
