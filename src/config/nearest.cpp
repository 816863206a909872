#include "config/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast::config {
namespace {

/// How many letters must be changed, added or left out.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    // No known word is longer, and comparing a megabyte would take long.
    if (word.size() > 64) return "";
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : known) {
        const std::size_t d = distance(word, candidate);
        // Of two that are equally near, the one that was begun: `prun` is `prune` without its end, and not `run`.
        const bool is_begun =
            d == best_distance && !best.empty() && candidate.starts_with(word) && !best.starts_with(word);
        if ((d >= best_distance && !is_begun) || d >= candidate.size()) continue;
        best = candidate;
        best_distance = d;
    }
    return best;
}

}  // namespace holdfast::config
