// Goal: every store keeps the same promises. Method: each topic has its file beside this one; all of them
// are run once for every line of cases.cpp, and see a store through its public contract and its harness.
#include "conformance/store_conformance.hpp"

#include "holdfast/open.hpp"

namespace holdfast::tests {

TEST(StoreCases, EverySchemeOfTheBuildHasACase) {
    std::vector<std::string> cases;
    for (const StoreCase& store_case : store_cases()) cases.push_back(store_case.name);
    std::vector<std::string> schemes;
    for (const std::string_view scheme : known_schemes()) schemes.emplace_back(scheme);
    EXPECT_THAT(cases, testing::UnorderedElementsAreArray(schemes));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance, testing::ValuesIn(store_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace holdfast::tests
