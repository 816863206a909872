// What users see of every error. Programs depend on these words and numbers: additions are fine, changes are not.

#include "holdfast/audit.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace holdfast {
namespace {

struct Expected {
    Errc code;
    std::uint16_t number;
    std::string_view name;
    int exit_status;
    int http_status;
};

const std::vector<Expected> contract{
    {Errc::lock_conflict, 1, "E_LOCK_CONFLICT", 75, 423},
    {Errc::lock_expired, 2, "E_LOCK_EXPIRED", 76, 410},
    {Errc::lock_not_held, 3, "E_LOCK_NOT_HELD", 79, 404},
    {Errc::fencing_mismatch, 4, "E_FENCING_MISMATCH", 80, 412},
    {Errc::outcome_unknown, 5, "E_OUTCOME_UNKNOWN", 70, 504},
    {Errc::store_unavailable, 6, "E_STORE_UNAVAILABLE", 69, 503},
    {Errc::name_invalid, 7, "E_NAME_INVALID", 64, 400},
    {Errc::usage, 8, "E_USAGE", 64, 400},
    {Errc::denied, 9, "E_DENIED", 77, 403},
    {Errc::config, 10, "E_CONFIG", 78, 500},
    {Errc::store_unsafe, 11, "E_STORE_UNSAFE", 78, 500},
    {Errc::format_unsupported, 12, "E_FORMAT_UNSUPPORTED", 78, 500},
    {Errc::token_regressed, 13, "E_TOKEN_REGRESSED", 80, 412},
    {Errc::consistency_unavailable, 14, "E_CONSISTENCY_UNAVAILABLE", 81, 0},
    {Errc::partial_snapshot, 15, "E_PARTIAL_SNAPSHOT", 82, 0},
    {Errc::migration_dirty, 16, "E_MIGRATION_DIRTY", 83, 0},
    {Errc::migration_checksum, 17, "E_MIGRATION_CHECKSUM", 83, 0},
    {Errc::migration_order, 18, "E_MIGRATION_ORDER", 83, 0},
    {Errc::drift, 19, "E_DRIFT", 83, 0},
    {Errc::audit_chain_broken, 20, "E_AUDIT_CHAIN_BROKEN", 84, 0},
    {Errc::payload_hash_mismatch, 21, "E_PAYLOAD_HASH_MISMATCH", 84, 0},
    {Errc::record_corrupt, 22, "E_RECORD_CORRUPT", 84, 500},
    {Errc::migration_failed, 23, "E_MIGRATION_FAILED", 83, 0},
    {Errc::data_invalid, 24, "E_DATA_INVALID", 65, 422},
    {Errc::timed_out, 25, "E_TIMED_OUT", 75, 0},
    {Errc::cancelled, 26, "E_CANCELLED", 75, 0},
};

TEST(ErrorTableTest, EveryCodeHasTheNumberNameAndStatusesOfTheContract) {
    for (const Expected& expected : contract) {
        const ErrorRow& row = row_of(expected.code);
        EXPECT_EQ(static_cast<std::uint16_t>(expected.code), expected.number) << expected.name;
        EXPECT_EQ(row.name, expected.name);
        EXPECT_EQ(row.exit_status, expected.exit_status) << expected.name;
        EXPECT_EQ(row.http_status, expected.http_status) << expected.name;
    }
}

TEST(ErrorTableTest, EveryCodeHasExactlyOneRow) {
    EXPECT_EQ(error_table().size(), contract.size());
    for (const Expected& expected : contract)
        EXPECT_EQ(std::ranges::count(error_table(), expected.code, &ErrorRow::code), 1) << expected.name;
}

TEST(ErrorTableTest, NamesAreUniqueAndSpelledAlike) {
    std::set<std::string_view> names;
    for (const ErrorRow& row : error_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_TRUE(row.name.starts_with("E_") && row.name.size() > 2) << row.name;
        EXPECT_TRUE(std::ranges::all_of(row.name, [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); }))
            << row.name;
        EXPECT_TRUE(row.meaning.ends_with('.')) << row.name;
    }
}

TEST(ErrorTableTest, NoStatusCanBeTakenForSuccessOrForAChildThatASignalEnded) {
    for (const ErrorRow& row : error_table()) {
        EXPECT_TRUE(row.exit_status >= 64 && row.exit_status < 125) << row.name;
        EXPECT_TRUE(row.http_status == 0 || (row.http_status >= 400 && row.http_status < 600)) << row.name;
    }
}

TEST(EventNamesTest, AreThoseOfTheJson) {
    const std::vector<std::pair<EventKind, std::string_view>> names{
        {EventKind::acquired, "acquired"},
        {EventKind::renewed, "renewed"},
        {EventKind::released, "released"},
        {EventKind::stolen, "stolen"},
        {EventKind::broken, "broken"},
        {EventKind::transferred, "transferred"},
        {EventKind::revived, "revived"},
        {EventKind::override_requested, "override_requested"},
        {EventKind::override_approved, "override_approved"},
        {EventKind::override_denied, "override_denied"},
        {EventKind::pruned, "pruned"},
        {EventKind::expired, "expired"},
        {EventKind::fenced, "fenced"},
        {EventKind::repaired, "repaired"}};
    for (const auto& [kind, name] : names) EXPECT_EQ(name_of(kind), name);
}

TEST(GradeNamesTest, AreThoseOfTheJson) {
    EXPECT_EQ(name_of(Grade::a), "A");
    EXPECT_EQ(name_of(Grade::b), "B");
    EXPECT_EQ(name_of(Grade::c), "C");
}

}  // namespace
}  // namespace holdfast
