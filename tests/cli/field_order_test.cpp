// The fields of every document, their order and their types are a contract. Method: each command is run, values are
// replaced by their type, and the rest is compared as text.
#include "sandbox.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace holdfast::cli_test {
namespace {

/// `text` with each text value as S and each number as N.
std::string shape_of(const std::string& text) {
    static const std::regex value(R"re("(?:[^"\\]|\\.)*"(?=[,}\]\n]))re");
    static const std::regex number(R"re(:-?[0-9]+)re");
    return std::regex_replace(std::regex_replace(text, value, "S"), number, ":N");
}

/// A lock that is held, one for which somebody asks, and one that is free; without the closing brace.
const std::string lease_fields =
    R"({"name":S,"state":S,"token":N,"lock_id":S,"holder":S,"user":null,"operation":null,"reason":null,)"
    R"("acquired_at":S,"renewed_at":S,"renew_seq":N,"expires_at":S,"expires_in_ms":N,"max_until":null,"waiters":N,)";
const std::string end_of_lock_fields =
    R"("store_id":S,"grade":S,"meta":{},"ttl_ms":N,"as_of":S,"seq":N,"pruned_seq":N,"chain":S)";
const std::string held_lock = lease_fields + R"("override":null,)" + end_of_lock_fields;
const std::string contested_lock =
    lease_fields +
    R"("override":{"lock_id":S,"holder":S,"user":null,"reason":S,"ttl_ms":N,"asked_at":S,"expires_at":S},)" +
    end_of_lock_fields;
const std::string free_lock =
    R"({"name":S,"state":S,"token":N,"lock_id":null,"holder":null,"user":null,"operation":null,"reason":null,)"
    R"("acquired_at":null,"renewed_at":null,"renew_seq":null,"expires_at":null,"expires_in_ms":null,"max_until":null,)"
    R"("waiters":N,"override":null,"store_id":S,"grade":S,"meta":{},"ttl_ms":null,"as_of":S,"seq":N,"pruned_seq":N,)"
    R"("chain":S)";

const std::string refused_by_holder =
    R"({"code":S,"message":S,"hint":S,"holder":)" + held_lock + R"(},"retry_after_ms":N})";

class FieldOrder : public testing::Test {
protected:
    std::string shape(Args args, const Environment& environment = {}) {
        args.insert(args.begin() + 1, "--json");
        std::string text = shape_of(box.run(args, environment).out);
        if (text.ends_with('\n')) text.pop_back();
        return text;
    }

    Sandbox box;
};

TEST_F(FieldOrder, OfLocksGrantsAndRefusals) {
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json().text("/lease");
    EXPECT_EQ(shape({"acquire", "b", "--ttl", "1h"}), held_lock + R"(,"lease":S,"stolen_from":null,"joined":false})");
    EXPECT_EQ(shape({"acquire", "a"}), R"({"error":)" + refused_by_holder + "}");
    EXPECT_EQ(shape({"status", "a"}), held_lock + R"(,"held_ms":N})");
    EXPECT_EQ(shape({"status", "nobody's"}), free_lock + R"(,"held_ms":null})");
    EXPECT_EQ(shape({"status"}), R"({"locks":[)" + held_lock + "}," + held_lock + "}]}");
    EXPECT_EQ(shape({"renew", "a", "--lease", mine}), held_lock + "}");
    const auto token = box.run({"status", "a", "--json"}).json().text("/token");
    EXPECT_EQ(shape({"check", "a", "--token", token}), held_lock + R"(,"current":true})");
    EXPECT_EQ(shape({"override", "request", "a", "-m", "why"}),
              contested_lock + R"(,"lease":S,"stolen_from":null,"joined":false})");
    EXPECT_EQ(shape({"override", "list"}), R"({"overrides":[)" + contested_lock + "}]}");
    EXPECT_EQ(shape({"override", "deny", "a"}), held_lock + "}");
    EXPECT_EQ(shape({"release", "a", "--lease", mine}), free_lock + R"(,"released":true})");
    EXPECT_EQ(shape({"release", "c", "--lease", mine, "--if-held"}), R"({"name":S,"released":false})");
    EXPECT_EQ(shape({"unlock", "b", "--yes"}), R"({"released":)" + held_lock + R"(},"may_run_until":S})");
}

TEST_F(FieldOrder, OfEvents) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    EXPECT_EQ(shape({"history", "a"}),
              R"({"events":[{"seq":N,"at":S,"name":S,"event":S,"token":N,"lock_id":S,"holder":S,"user":null,)"
              R"("actor":null,"reason":null,"details":{"ttl_ms":S},"prev_hash":S,"hash":S}]})");
    EXPECT_EQ(shape({"history", "--verify"}), R"({"verified":N,"locks":N})");
    EXPECT_EQ(shape({"prune"}), R"({"pruned":N,"locks":N,"dry_run":false})");
}

TEST_F(FieldOrder, OfWhatConcernsAStoreOrTheProgram) {
    EXPECT_EQ(shape({"init"}), R"({"store":S,"store_id":S,"grade":S})");
    EXPECT_EQ(shape({"init", "--print"}), R"({"schema":S})");
    EXPECT_EQ(shape({"init", "--print", "-s", "file:x"}), R"({"schema":null})");
    EXPECT_EQ(shape({"help"}), R"({"help":S})");
    EXPECT_EQ(shape({"completion", "bash"}), R"({"completion":S})");
    const std::string version = shape({"version"});
    EXPECT_TRUE(version.starts_with(R"({"version":S,"stores":[S,S)")) << version;
    const std::string doctor = shape({"doctor"});
    EXPECT_TRUE(doctor.starts_with(R"({"grade":S,"store":S,"store_id":S,"reasons":[S],"properties":{"is_shared":true,)"
                                   R"("has_sessions":true,"pushes":true,"commits_batches_as_one":true,)"
                                   R"("shows_only_durable":true,"clock_resolution_ms":N,"largest_value":N},)"
                                   R"("checks":[{"name":S,"ok":true,"detail":S},)"))
        << doctor;
    const std::string times = R"({"count":N,"p50_us":N,"p90_us":N,"p99_us":N,"max_us":N})";
    const std::string pairs =
        R"({"clients":N,"pairs_per_second":N,"acquire":)" + times + R"(,"release":)" + times + "}";
    EXPECT_EQ(shape({"bench", "--time", "1ms", "--clients", "2"}),
              R"({"store":S,"grade":S,"one":)" + pairs + R"(,"many":)" + pairs + R"(,"handover":)" + times + "}");
}

TEST_F(FieldOrder, OfTheOutcomeOfRun) {
    const std::string lock = R"({"name":S,"token":N,"lock_id":S,"store_id":S,"joined":false})";
    EXPECT_EQ(shape({"run", "a", "--and", "b", "--", "true"}),
              R"({"outcome":S,"exit_code":N,"child":{"code":N,"signal":null},"locks":[)" + lock + "," + lock +
                  R"(],"left_over":[],"margin_ms":null,"error":null})");
    EXPECT_EQ(shape({"run", "a", "--", "sh", "-c", "kill -9 $$"}),
              R"({"outcome":S,"exit_code":N,"child":{"code":null,"signal":N},"locks":[)" + lock +
                  R"(],"left_over":[],"margin_ms":null,"error":null})");
    EXPECT_EQ(shape({"run", "a", "--", "/nonexistent/program"}),
              R"({"outcome":S,"exit_code":N,"child":{"code":null,"signal":null},"locks":[)" + lock +
                  R"(],"left_over":[],"margin_ms":null,"error":{"code":S,"message":S,"hint":S,"holder":null,)"
                  R"("retry_after_ms":null}})");
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    EXPECT_EQ(shape({"run", "a", "--", "true"}),
              R"({"outcome":S,"exit_code":N,"child":{"code":null,"signal":null},"error":)" + refused_by_holder + "}");
}

}  // namespace
}  // namespace holdfast::cli_test
