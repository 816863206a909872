#include "server/figures/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace holdfast::server {
namespace {

void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c;
        }
    }
}

/// `{outcome="granted"}`, or nothing.
std::string written(Metrics::Labels labels) {
    std::string out;
    for (const auto& [name, value] : labels) {
        if (!out.empty()) out += ',';
        out += name;
        out += "=\"";
        append_escaped(out, value);
        out += '"';
    }
    return out;
}

std::string in_braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

std::string number(double value) { return std::isinf(value) ? "+Inf" : fmt::format("{}", value); }

std::string_view kind_of(const MetricRow& row) {
    switch (row.kind) {
        case MetricRow::Kind::counter: return "counter";
        case MetricRow::Kind::gauge: return "gauge";
        case MetricRow::Kind::histogram: return "histogram";
    }
    return "";
}

}  // namespace

Metrics::Metrics(std::span<const MetricRow> rows) : rows_(rows) {
    for (const MetricRow& row : rows_) figures_[row.name].row = &row;
}

Metrics::Figure& Metrics::figure_of(std::string_view name) {
    const auto figure = figures_.find(name);
    if (figure == figures_.end()) std::abort();
    return figure->second;
}

double* Metrics::value_of(std::string_view name, const std::string& labels) {
    auto& values = figure_of(name).values;
    if (const auto found = values.find(labels); found != values.end()) return &found->second;
    if (values.size() >= most_series) {
        ++dropped_;
        return nullptr;
    }
    return &values[labels];
}

void Metrics::add(std::string_view name, double more, Labels labels) {
    const std::scoped_lock lock(mutex_);
    if (double* value = value_of(name, written(labels))) *value += more;
}

void Metrics::set(std::string_view name, double value, Labels labels) {
    const std::scoped_lock lock(mutex_);
    if (double* kept = value_of(name, written(labels))) *kept = value;
}

void Metrics::observe(std::string_view name, double value, Labels labels) {
    const std::scoped_lock lock(mutex_);
    Figure& figure = figure_of(name);
    const MetricRow& row = *figure.row;
    auto& histograms = figure.histograms;
    const std::string key = written(labels);
    if (!histograms.contains(key) && histograms.size() >= most_series) {
        ++dropped_;
        return;
    }
    Histogram& histogram = histograms[key];
    histogram.counts.resize(row.buckets.size() + 1);
    const auto bucket = std::ranges::lower_bound(row.buckets, value) - row.buckets.begin();
    ++histogram.counts[static_cast<std::size_t>(bucket)];
    histogram.sum += value;
}

void Metrics::replace(std::string_view name, std::string_view label, const Series& series) {
    const std::scoped_lock lock(mutex_);
    auto& values = figure_of(name).values;
    values.clear();
    for (const auto& [text, value] : series) {
        if (values.size() >= most_series) {
            ++dropped_;
            continue;
        }
        values[written({{label, text}})] = value;
    }
}

std::string Metrics::text() const {
    const std::scoped_lock lock(mutex_);
    std::string out;
    for (const MetricRow& row : rows_) {
        const Figure& figure = figures_.at(row.name);
        const bool is_dropped = row.name == "holdfast_metrics_dropped_total";
        if (figure.values.empty() && figure.histograms.empty() && !is_dropped) continue;
        out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", row.name, row.help, kind_of(row));
        if (is_dropped) {
            out += fmt::format("{} {}\n", row.name, number(dropped_));
            continue;
        }
        for (const auto& [labels, value] : figure.values)
            out += fmt::format("{}{} {}\n", row.name, in_braces(labels), number(value));
        for (const auto& [labels, histogram] : figure.histograms) {
            std::uint64_t count = 0;
            for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
                count += histogram.counts[i];
                const double bound = i < row.buckets.size() ? row.buckets[i] : INFINITY;
                out += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", row.name, labels, labels.empty() ? "" : ",",
                                   number(bound), count);
            }
            out += fmt::format("{0}_sum{1} {2}\n{0}_count{1} {3}\n", row.name, in_braces(labels), number(histogram.sum),
                               count);
        }
    }
    return out;
}

}  // namespace holdfast::server
