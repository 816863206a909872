#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Measuring Holdfast beside what people would use instead, in one run.
namespace holdfast::bench {

/// One of several that are measured in turn. `once` gives one figure: milliseconds, or pairs per second.
struct Contender {
    std::string name;
    std::function<double()> once;
};

/// The figures of one contender, a round each.
struct Series {
    std::vector<double> values{};
    [[nodiscard]] double median() const;
    /// The distance between the quartiles, in percent of the median.
    [[nodiscard]] double spread() const;
};

/// A B C A B C…, so that what disturbs the machine disturbs all of them. Shows how far it is as `title` on standard
/// error.
[[nodiscard]] std::vector<Series> alternate(std::string_view title, std::span<const Contender> contenders, int rounds);

[[nodiscard]] double quantile(std::vector<double> values, double q);

enum class Better { lower, higher };

/// What is asked of a ratio. Absent: the line is for information.
struct Goal {
    double ratio = 0;
    Better better = Better::lower;
};

/// One line of the report.
struct Line {
    std::string id;
    std::string measure;
    std::string unit;
    std::string peer_name;
    Series peer;
    Series holdfast;
    std::optional<Goal> goal{};

    /// The median of the rounds' own ratios, Holdfast to the peer.
    [[nodiscard]] double ratio() const;
    [[nodiscard]] bool met() const;
};

/// `≥ 0.9`, or nothing.
[[nodiscard]] std::string text_of(const std::optional<Goal>& goal);

/// The table, for people.
[[nodiscard]] std::string to_table(std::span<const Line> lines);
/// `[{"id","measure","peer","holdfast","ratio","goal","met"}]`, for programs.
[[nodiscard]] std::string to_json(std::span<const Line> lines);

}  // namespace holdfast::bench
