// Goal: every endpoint, and every request of a batch, with every role and area.
// Method: a table that is compared with the document of the daemon, so that no endpoint can be left out.
#include "json/parse.hpp"
#include "server/guarded.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace holdfast::server_test {
namespace {

/// One call, with `{}` for the name of a lock, and who may make it.
struct Cell {
    std::string method;
    std::string target;
    std::string body;
    int role;                ///< 0: viewer, 1: holder, 2: admin.
    bool for_a_lock = true;  ///< Otherwise a grant for any area will do.
    bool for_all = false;    ///< A grant for everything is needed.
};

const std::string some_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
const std::string some_id = "00000000-0000-4000-8000-000000000000";

std::vector<Cell> cells() {
    const auto body = [](const std::string& rest) { return R"({"name":"{}")" + rest + "}"; };
    const std::string lease = R"(,"lease":")" + some_lease + '"';
    const std::string lock_id = R"(,"lock_id":")" + some_id + '"';
    return {
        {"POST", "/v1/acquire", body(""), 1},
        {"POST", "/v1/renew", body(lease), 1},
        {"POST", "/v1/release", body(lease), 1},
        {"POST", "/v1/cancel", body(lease), 1},
        {"POST", "/v1/transfer", body(lease + R"(,"to":"x")"), 1},
        {"POST", "/v1/check", body(R"(,"token":1)"), 0},
        {"POST", "/v1/expire", body(lock_id), 1},
        {"POST", "/v1/fenced", body(lock_id + R"(,"token":1,"holder":"x")"), 1},
        {"POST", "/v1/unlock", body(lock_id), 2},
        {"POST", "/v1/override/request", body(""), 1},
        {"POST", "/v1/override/approve", body(lock_id), 2},
        {"POST", "/v1/override/deny", body(lock_id), 2},
        {"POST", "/v1/override/approve", body(lock_id + lease), 1},
        {"POST", "/v1/override/deny", body(lock_id + lease), 1},
        {"POST", "/v1/batch", R"({"requests":[{"op":"prune","name":"{}","through":1}]})", 2},
        {"POST", "/v1/batch", R"({"requests":[{"op":"repair","name":"{}"}]})", 2},
        {"POST", "/v1/batch",
         R"({"requests":[{"op":"break","name":"{}","lock_id":"00000000-0000-4000-8000-000000000000"}]})", 2},
        {"POST", "/v1/batch", R"({"requests":[{"op":"check","name":"{}","token":1}]})", 0},
        {"POST", "/v1/wait", R"({"watches":[{"name":"{}"}],"timeout_ms":0})", 0},
        {"GET", "/v1/check?name={}&token=1", "", 0},
        {"GET", "/v1/lock?name={}", "", 0},
        {"GET", "/v1/history?name={}", "", 0},
        {"GET", "/v1/locks", "", 0, false},
        {"GET", "/v1/history", "", 0, false},
        {"GET", "/v1/overrides", "", 0, false},
        {"GET", "/v1/events?since=end", "", 0, false},
        {"GET", "/v1/store", "", 0, false},
        {"GET", "/v1/session", "", 0, false},
        {"GET", "/metrics", "", 0, false, true},
        {"GET", "/v1/store?examine=1", "", 2, false, true},
    };
}

/// The same calls, each as the only request of a batch: `/v1/override/deny` is there as `override_deny`.
std::vector<Cell> cells_of_batches() {
    std::vector<Cell> batches;
    for (const Cell& cell : cells()) {
        if (cell.method != "POST" || cell.target == "/v1/batch" || cell.target == "/v1/wait") continue;
        std::string op = cell.target.substr(std::string("/v1/").size());
        std::ranges::replace(op, '/', '_');
        batches.push_back(
            {"POST", "/v1/batch", R"({"requests":[{"op":")" + op + "\"," + cell.body.substr(1) + "]}", cell.role});
    }
    return batches;
}

std::vector<Cell> all_cells() {
    std::vector<Cell> all = cells();
    std::ranges::copy(cells_of_batches(), std::back_inserter(all));
    return all;
}

const json::Node& field_of(const json::Node& node, std::string_view key) {
    static const json::Node none{};
    if (node.object() == nullptr) return none;
    const auto found = std::ranges::find(*node.object(), key, &json::Member::key);
    return found == node.object()->end() ? none : found->node;
}

std::string filled(std::string text, const std::string& name) {
    if (const auto at = text.find("{}"); at != std::string::npos) text.replace(at, 2, name);
    return text;
}

TEST(Rights, EveryEndpointWithEveryRoleAndArea) {
    Guarded guarded;
    const std::vector<std::string> roles{"viewer", "holder", "admin"};
    for (int role = 0; role < 3; ++role) {
        const std::string team = guarded.token("alice", {roles[static_cast<std::size_t>(role)] + ":team"});
        const std::string all = guarded.token("alice", {roles[static_cast<std::size_t>(role)]});
        for (const Cell& cell : all_cells()) {
            const std::string what = fmt::format("{} {} {} as {}", cell.method, cell.target, cell.body, role);
            const auto denied = [&](const std::string& token, const char* name) {
                const Answer answer =
                    guarded.call(token, cell.method, filled(cell.target, name), filled(cell.body, name));
                EXPECT_THAT(answer.status, testing::AllOf(testing::Ne(0), testing::Ne(401), testing::Ne(500))) << what;
                // The protocol refuses with the same code: a question that was asked before, a lease that is wrong.
                return answer.status == 403 && answer.body.find("needs the role") != std::string::npos;
            };
            EXPECT_EQ(denied(team, "team/a"), role < cell.role || cell.for_all) << what;
            EXPECT_EQ(denied(all, "team/a"), role < cell.role) << what;
            if (cell.for_a_lock) {
                EXPECT_TRUE(denied(team, "teams")) << what;
                EXPECT_TRUE(denied(team, "other")) << what;
            }
        }
    }
}

/// The operations that the document of the daemon has, as `GET /v1/lock`.
TEST(Rights, NoEndpointIsLeftOut) {
    const Daemon daemon;
    const auto document = json::parse(daemon.get("/openapi.json").body);
    ASSERT_TRUE(document);
    std::set<std::string> in_table;
    for (const Cell& cell : cells()) in_table.insert(cell.method + ' ' + cell.target.substr(0, cell.target.find('?')));
    std::set<std::string> guarded;
    std::set<std::string> for_everybody;
    for (const auto& [path, operations] : *field_of(*document, "paths").object())
        for (const auto& [method, operation] : *operations.object()) {
            std::string name = method + ' ' + path;
            std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(method.size()), name.begin(),
                           [](char c) { return static_cast<char>(c - 'a' + 'A'); });
            // An operation for everybody says so; the others need what the document demands of all.
            (field_of(operation, "security").array() != nullptr ? for_everybody : guarded).insert(name);
        }
    EXPECT_EQ(guarded, in_table) << "an endpoint without a row in the table of this file, or a row without an endpoint";
    EXPECT_EQ(for_everybody, (std::set<std::string>{"DELETE /v1/session", "GET /", "GET /healthz", "GET /openapi.json",
                                                    "GET /readyz", "POST /v1/session"}))
        << "whoever opens an endpoint to everybody says so here, too";
}

TEST(Rights, NoRequestOfABatchIsLeftOut) {
    const Daemon daemon;
    const auto document = json::parse(daemon.get("/openapi.json").body);
    ASSERT_TRUE(document);
    std::set<std::string> known;
    for (const auto& [name, schema] : *field_of(field_of(*document, "components"), "schemas").object())
        if (const auto* const ops = field_of(field_of(field_of(schema, "properties"), "op"), "enum").array())
            for (const json::Node& op : *ops) known.insert(std::get<std::string>(op.value));
    ASSERT_GT(known.size(), 12U);
    for (const std::string& op : known)
        EXPECT_TRUE(std::ranges::any_of(all_cells(), [&](const Cell& cell) {
            return cell.target == "/v1/batch" && cell.body.contains(fmt::format(R"("op":"{}")", op));
        })) << op;
}

TEST(Rights, WithoutAProofNothingIsAnsweredButWhatIsForEverybody) {
    Guarded guarded;
    for (const Cell& cell : cells())
        for (const char* token : {"", "x", "hft_000000000000_0"}) {
            const Answer answer = guarded.call(token, cell.method, filled(cell.target, "a"), filled(cell.body, "a"));
            EXPECT_EQ(answer.status, 401) << cell.target;
            EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
            EXPECT_EQ(answer.code(), "E_DENIED");
        }
    for (const char* open : {"/healthz", "/readyz", "/openapi.json", "/"})
        EXPECT_EQ(guarded.get("", open).status, 200) << open;
}

}  // namespace
}  // namespace holdfast::server_test
