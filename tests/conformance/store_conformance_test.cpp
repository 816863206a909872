// Goal: every store keeps the same promises. Method: each topic has its file beside this one; all of them
// are run once for every line of cases.cpp, and see a store through its public contract and its harness.
#include "conformance/store_conformance.hpp"

#include "holdfast/open.hpp"

#include <set>

namespace holdfast::tests {

TEST(StoreCases, EverySchemeOfTheBuildHasACase) {
    std::set<std::string> cases;
    for (const StoreCase& store_case : store_cases()) cases.insert(store_case.scheme());
    std::set<std::string> schemes;
    for (const std::string_view scheme : known_schemes()) schemes.emplace(scheme);
    EXPECT_EQ(cases, schemes);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance, testing::ValuesIn(store_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace holdfast::tests
