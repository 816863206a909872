#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::server {

/// One thing that is measured, as data: `docs/reference/metrics.md` is compared with the table.
struct MetricRow {
    enum class Kind { counter, gauge, histogram };

    std::string_view name;  ///< With the unit at its end, and `_total` for a counter.
    Kind kind;
    std::string_view help;
    std::span<const double> buckets{};  ///< Upper bounds, rising; of a histogram.
};

/// Figures in the text format of Prometheus. May be used from any thread.
///
/// A figure has at most `most_series` different labels: what comes beyond that is not counted, and said in
/// `holdfast_metrics_dropped_total`, so that no client can fill the memory of the daemon, or of Prometheus.
class Metrics {
public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
    static constexpr std::size_t most_series = 1000;

    /// `rows` must outlive it. Figures without labels begin at zero; those with labels appear when they are first used.
    explicit Metrics(std::span<const MetricRow> rows);

    void add(std::string_view name, double more = 1, Labels labels = {});
    void set(std::string_view name, double value, Labels labels = {});
    void observe(std::string_view name, double value, Labels labels = {});

    /// The series of one gauge, all at once: those of before are gone.
    using Series = std::vector<std::pair<std::string, double>>;
    void replace(std::string_view name, std::string_view label, const Series& series);

    [[nodiscard]] std::string text() const;

private:
    struct Histogram {
        std::vector<std::uint64_t> counts{};  ///< Of each bucket, and of what is above all of them.
        double sum = 0;
    };
    struct Figure {
        const MetricRow* row = nullptr;
        std::map<std::string, double> values{};  ///< By labels, as they are written.
        std::map<std::string, Histogram> histograms{};
    };

    [[nodiscard]] double* value_of(std::string_view name, const std::string& labels);
    [[nodiscard]] Figure& figure_of(std::string_view name);

    const std::span<const MetricRow> rows_;
    mutable std::mutex mutex_;
    /// Guarded by mutex_.
    std::unordered_map<std::string_view, Figure> figures_{};
    double dropped_ = 0;
};

}  // namespace holdfast::server
