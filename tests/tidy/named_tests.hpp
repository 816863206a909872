#pragma once

#include "tidy/source_tree.hpp"

#include <vector>

/// Pages that name the test of each of their sentences: the sentence has a number such as [7], and a table at the end
/// has a row that begins with that number and names the test.
namespace holdfast::tidy {

/// Tests that `page` names as `Suite.Test` and that none of `sources` has.
[[nodiscard]] Complaints tests_that_do_not_exist(const SourceFile& page, const std::vector<SourceFile>& sources);

/// Numbers in the text of `page` without a row, and rows that nothing refers to.
[[nodiscard]] Complaints numbers_without_partner(const SourceFile& page);

}  // namespace holdfast::tidy
