#include "peers/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace holdfast::bench {
namespace {

std::string text_of(const std::optional<Goal>& goal) {
    if (!goal) return "";
    return fmt::format("{} {:.1f}", goal->better == Better::lower ? "≤" : "≥", goal->ratio);
}

std::string verdict(const Line& line) { return !line.goal ? "" : line.met() ? "yes" : "no"; }

}  // namespace

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    const auto above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], at - std::floor(at));
}

double Series::median() const { return quantile(values, 0.5); }
double Series::spread() const { return 100 * (quantile(values, 0.75) - quantile(values, 0.25)) / median(); }

std::vector<Series> alternate(std::span<const Contender> contenders, int rounds) {
    std::vector<Series> series(contenders.size());
    // The first round warms caches up and is not counted.
    for (int round = -1; round < rounds; ++round) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            const double figure = contenders[i].once();
            if (round >= 0) series[i].values.push_back(figure);
        }
    }
    return series;
}

double Line::ratio() const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(peer.values.size(), holdfast.values.size()); ++i)
        ratios.push_back(holdfast.values[i] / peer.values[i]);
    return quantile(ratios, 0.5);
}

bool Line::met() const {
    if (!goal) return true;
    return goal->better == Better::lower ? ratio() <= goal->ratio : ratio() >= goal->ratio;
}

std::string to_table(std::span<const Line> lines) {
    std::string table = fmt::format("{:<4} {:<44} {:<24} {:>18} {:>18} {:>6} {:>6} {:>4}\n", "id", "measure", "peer",
                                    "peer's figure", "Holdfast", "ratio", "goal", "met");
    for (const Line& line : lines) {
        const auto figure = [&](const Series& series) {
            return fmt::format("{:.2f} {} ±{:.0f}%", series.median(), line.unit, series.spread() / 2);
        };
        table += fmt::format("{:<4} {:<44} {:<24} {:>18} {:>18} {:>6.2f} {:>6} {:>4}\n", line.id, line.measure,
                             line.peer_name, figure(line.peer), figure(line.holdfast), line.ratio(), text_of(line.goal),
                             verdict(line));
    }
    return table;
}

std::string to_json(std::span<const Line> lines) {
    std::string json = "[";
    for (const Line& line : lines) {
        const auto goal = line.goal ? fmt::format("\"{}\"", text_of(line.goal)) : "null";
        const auto met = line.goal ? fmt::format("{}", line.met()) : "null";
        json += fmt::format(
            R"({}{{"id":"{}","measure":"{}","unit":"{}","peer_name":"{}","peer":{:.4f},"peer_spread_percent":{:.0f},)"
            R"("holdfast":{:.4f},"holdfast_spread_percent":{:.0f},"ratio":{:.3f},"rounds":{},"goal":{},"met":{}}})",
            json.size() == 1 ? "\n" : ",\n", line.id, line.measure, line.unit, line.peer_name, line.peer.median(),
            line.peer.spread(), line.holdfast.median(), line.holdfast.spread(), line.ratio(),
            line.holdfast.values.size(), goal, met);
    }
    return json + "\n]\n";
}

}  // namespace holdfast::bench
