#include "harness/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace holdfast::bench {
namespace {

constexpr double row = 22;
constexpr double top = 48;
constexpr double labels = 430;  ///< Width of what stands left of the bars.
constexpr double bars = 520;
constexpr double right = 70;
/// The axis: hundredth to hundredfold, each factor of ten as wide as the next.
constexpr double least = 0.01;
constexpr double most = 100;

double x_of(double ratio) {
    const double clamped = std::clamp(ratio, least, most);
    return labels + bars * std::log(clamped / least) / std::log(most / least);
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '&')
            out += "&amp;";
        else
            out += c;
    }
    return out;
}

std::string axis(double bottom) {
    std::string out;
    for (const double tick : {0.01, 0.1, 1.0, 10.0, 100.0})
        out += fmt::format(
            R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}" stroke="{3}"/><text x="{0:.1f}" y="{4}" text-anchor="middle">{5:g}</text>)"
            "\n",
            x_of(tick), top - 6, bottom, tick == 1.0 ? "#444" : "#ddd", top - 12, tick);
    return out;
}

std::string bar(const Line& line, double y) {
    const double from = x_of(1.0);
    const double to = x_of(line.ratio());
    const std::string_view colour = !line.goal ? "#9aa5b1" : line.met() ? "#3a8f5c" : "#c8553d";
    std::string out = fmt::format(
        R"(<text x="{}" y="{:.1f}" text-anchor="end">{} {} : {}</text><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="12" fill="{}"/><text x="{}" y="{:.1f}">{:.2f}</text>)"
        "\n",
        labels - 8, y + 10, line.id, escaped(line.measure), escaped(line.peer_name), std::min(from, to), y,
        std::max(std::abs(to - from), 1.0), colour, labels + bars + 8, y + 10, line.ratio());
    if (line.goal)
        out +=
            fmt::format(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="black" stroke-width="2"/>)"
                        "\n",
                        x_of(line.goal->ratio), y - 3, y + 15);
    return out;
}

}  // namespace

std::string to_svg(std::span<const Line> lines) {
    const double height = top + row * static_cast<double>(lines.size()) + 12;
    const double width = labels + bars + right;
    std::string svg = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" font-family="sans-serif" font-size="11">)"
        "\n"
        R"(<rect width="100%" height="100%" fill="white"/><text x="12" y="18" font-size="13">Holdfast to its peer; the black mark is the goal. Milliseconds: less is better; a second: more is better.</text>)"
        "\n",
        width, height);
    svg += axis(height - 8);
    double y = top;
    for (const Line& line : lines) {
        svg += bar(line, y);
        y += row;
    }
    return svg + "</svg>\n";
}

}  // namespace holdfast::bench
