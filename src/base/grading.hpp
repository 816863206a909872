#pragma once

#include "holdfast/store.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::base {

/// The grade of a store, and the reasons for it: each finding can lower it, and none can raise it again.
struct Grading {
    Grade grade = Grade::a;
    std::vector<std::string> reasons{};

    void lower(Grade at_best, std::string reason) {
        grade = std::max(grade, at_best);
        reasons.push_back(std::move(reason));
    }
    /// The reason for a grade that no finding has lowered.
    void explain(std::string reason) {
        if (grade == Grade::a) reasons.push_back(std::move(reason));
    }
};

}  // namespace holdfast::base
