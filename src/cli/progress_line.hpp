#pragma once

#include "cli/output.hpp"

#include <string_view>

namespace holdfast::cli {

/// A line that is written over while work goes on; nothing where nobody watches.
class ProgressLine {
public:
    explicit ProgressLine(const Style& style);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(std::string_view text) const;

private:
    bool shown_;
};

}  // namespace holdfast::cli
