#include "harness/comparison.hpp"

#include "harness/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace holdfast::bench {
namespace {

std::string verdict(const Line& line) { return !line.goal ? "" : line.met() ? "yes" : "no"; }

/// In letters, not bytes.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::string text_of(const std::optional<Goal>& goal) {
    if (!goal) return "";
    return fmt::format("{} {:.1f}", goal->better == Better::lower ? "≤" : "≥", goal->ratio);
}

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

std::vector<Series> alternate(std::string_view title, std::span<const Contender> contenders, int rounds) {
    std::vector<Series> series(contenders.size());
    // The first round warms caches up and is not counted.
    for (int round = -1; round < rounds; ++round) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            show_progress(round < 0
                              ? fmt::format("{}: warming up, {}", title, contenders[i].name)
                              : fmt::format("{}: round {} of {}, {}", title, round + 1, rounds, contenders[i].name));
            const double figure = contenders[i].once();
            if (round >= 0) series[i].values.push_back(figure);
        }
    }
    end_progress(title);
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
    using Row = std::array<std::string, 8>;
    std::vector<Row> rows{{"id", "measure", "peer", "peer's figure", "Holdfast", "ratio", "goal", "met"}};
    for (const Line& line : lines) {
        const auto figure = [&](const Series& series) {
            return fmt::format("{:.{}f} {} ±{:.0f}%", series.median(), series.median() < 100 ? 2 : 0, line.unit,
                               series.spread() / 2);
        };
        rows.push_back({line.id, line.measure, line.peer_name, figure(line.peer), figure(line.holdfast),
                        fmt::format("{:.2f}", line.ratio()), text_of(line.goal), verdict(line)});
    }
    constexpr std::size_t texts = 3;  // The other columns are figures.
    std::array<std::size_t, std::tuple_size_v<Row>> widths{};
    for (const Row& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    std::string table;
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string padding(widths[i] - width_of(row[i]), ' ');
            table += (i == 0 ? "" : "  ") + (i < texts ? row[i] + padding : padding + row[i]);
        }
        table += '\n';
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
