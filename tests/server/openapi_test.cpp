// Goal: the OpenAPI document says what the daemon does.
// Method: every operation of the document is called, and every field of a request is given to the reader of requests.
#include "json/parse.hpp"
#include "json/request.hpp"
#include "server/daemon.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::server_test {
namespace {

using testing::HasSubstr;

const json::Node* member(const json::Node& node, std::string_view key) {
    if (node.object() == nullptr) return nullptr;
    const auto found = std::ranges::find(*node.object(), key, &json::Member::key);
    return found == node.object()->end() ? nullptr : &found->node;
}

json::Node document_of(const Daemon& daemon) {
    auto parsed = json::parse(daemon.get("/openapi.json").body);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? std::move(*parsed) : json::Node{};
}

TEST(OpenApi, EveryOperationOfTheDocumentIsThere) {
    const Daemon daemon;
    const json::Node document = document_of(daemon);
    const json::Node* paths = member(document, "paths");
    ASSERT_NE(paths, nullptr);
    EXPECT_GT(paths->object()->size(), 20U);
    for (const auto& [path, operations] : *paths->object())
        for (const auto& [method, operation] : *operations.object()) {
            if (path == "/v1/events") continue;  // Has no end.
            std::string name = method;
            std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
            const Answer answer = daemon.client().call(name, path);
            EXPECT_NE(answer.status, 404) << name << ' ' << path;
            EXPECT_NE(answer.status, 405) << name << ' ' << path;
            EXPECT_TRUE(answer.status != 0) << name << ' ' << path;
        }
}

TEST(OpenApi, TheSchemasOfRequestsHaveNoFieldThatIsNotRead) {
    const Daemon daemon;
    const json::Node document = document_of(daemon);
    const json::Node* schemas = member(*member(document, "components"), "schemas");
    ASSERT_NE(schemas, nullptr);
    std::size_t seen = 0;
    for (const auto& [name, schema] : *schemas->object()) {
        const json::Node* properties = member(schema, "properties");
        const json::Node* op = properties == nullptr ? nullptr : member(*properties, "op");
        if (op == nullptr) continue;
        ++seen;
        const std::string kind = std::get<std::string>(member(*op, "enum")->array()->front().value);
        std::string sent = R"({"op":")" + kind + R"(","name":"a")";
        for (const auto& [field, unused] : *properties->object())
            if (field != "op" && field != "name") sent += ",\"" + field + "\":null";
        const auto read = json::read_request(*json::parse(sent + "}"), "", *Ttl::of(Ttl::shortest));
        const std::string why = read ? "" : read.error().message;
        EXPECT_THAT(why, Not(HasSubstr("is not a field"))) << kind;
    }
    EXPECT_EQ(seen, 13U) << "one for each kind of request";
}

}  // namespace
}  // namespace holdfast::server_test
