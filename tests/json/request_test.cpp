// Requests: what a client writes is what a daemon reads, and what a person types by hand is understood or refused with
// the field's name.
#include "json/request.hpp"

#include "json/random_values.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::json {
namespace {

using std::chrono::milliseconds;
using testing::StartsWith;

const Ttl usual = *Ttl::of(std::chrono::seconds{30});
const std::string a_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
const std::string an_id = a_lease.substr(0, 36);

Result<SentRequest> read(const std::string& text, std::string_view op = "") {
    const auto node = parse(text);
    EXPECT_TRUE(node) << text;
    return read_request(*node, op, usual);
}

std::string request_refusal(const std::string& text, std::string_view op = "") {
    const auto sent = read(text, op);
    if (sent) return "";
    EXPECT_TRUE(sent.error().code == Errc::usage || sent.error().code == Errc::name_invalid);
    return sent.error().message;
}

TEST(JsonRequests, AreReadAsTheyWereWritten) {
    RandomValues random(tests::seed_of("json requests"));
    std::vector<Request> all;
    for (int i = 0; i < 3000; ++i) all.push_back(random.request());
    for (const Request& sent : all) {
        const std::string text = request(sent).done().written();
        const auto back = read(text);
        ASSERT_TRUE(back) << back.error().message << ": " << text;
        ASSERT_EQ(back->request.index(), sent.index()) << text;
        ASSERT_EQ(request(back->request).done().written(), text);
        ASSERT_EQ(back->wait, std::nullopt);
    }
    all.erase(all.begin() + 100, all.end());
    const auto batch_text = batch(all).done().written();
    const auto requests = read_batch(*parse(batch_text), usual, 100);
    ASSERT_TRUE(requests) << requests.error().message;
    std::vector<Request> again;
    for (const SentRequest& each : *requests) again.push_back(each.request);
    EXPECT_EQ(batch(again).done().written(), batch_text);
}

TEST(JsonRequests, EveryFieldOfAnAcquireArrives) {
    const auto sent = read(fmt::format(
        R"({{"op":"acquire","name":"a","lease":"{}","holder":"h","user":"u","operation":"o","reason":"r","ttl_ms":1000,)"
        R"("max_hold_ms":2000,"wait_ms":3000,"ticket_ms":4000,"unless_held":["b","c"],"meta":{{"k":"v"}}}})",
        a_lease));
    ASSERT_TRUE(sent) << sent.error().message;
    const auto& acquire = std::get<Acquire>(sent->request);
    EXPECT_EQ(acquire.name.text(), "a");
    EXPECT_EQ(acquire.as.reveal(), a_lease);
    EXPECT_EQ(acquire.holder, (Holder{"h", "u"}));
    EXPECT_EQ(acquire.operation, "o");
    EXPECT_EQ(acquire.reason, "r");
    EXPECT_EQ(acquire.ttl.time(), milliseconds{1000});
    EXPECT_EQ(acquire.max_hold, milliseconds{2000});
    EXPECT_EQ(sent->wait, milliseconds{3000});
    EXPECT_EQ(acquire.ticket->time(), milliseconds{4000});
    EXPECT_EQ(acquire.unless_held.size(), 2U);
    EXPECT_EQ(acquire.meta, (std::map<std::string, std::string>{{"k", "v"}}));
}

TEST(JsonRequests, AreWrittenWithEveryFieldThatTheyHave) {
    const std::vector<std::string> texts{
        R"({"op":"acquire","name":"a","lease":"L","holder":"h","user":"u","operation":"o","reason":"r","ttl_ms":1000,)"
        R"("max_hold_ms":2000,"wait_ms":3000,"ticket_ms":4000,"unless_held":["b","c"],"meta":{"k":"v"}})",
        R"({"op":"renew","name":"a","lease":"L","ttl_ms":1000,"revive":true})",
        R"({"op":"release","name":"a","lease":"L"})",
        R"({"op":"cancel","name":"a","lease":"L"})",
        R"({"op":"transfer","name":"a","lease":"L","to":"h","user":"u","to_lease":"L","reason":"r"})",
        R"({"op":"unlock","name":"a","lock_id":"I","actor":"x","reason":"r"})",
        R"({"op":"expire","name":"a","lock_id":"I"})",
        R"({"op":"check","name":"a","token":7,"lock_id":"I","unless_held":["b"]})",
        R"({"op":"override_request","name":"a","lease":"L","holder":"h","user":"u","reason":"r","ttl_ms":1000,)"
        R"("valid_for_ms":2000,"wait_ms":0})",
        R"({"op":"override_approve","name":"a","lock_id":"I","lease":"L","actor":"x","reason":"r",)"
        R"("longest_ttl_ms":1,"max_hold_ms":2})",
        R"({"op":"override_deny","name":"a","lock_id":"I"})",
        R"({"op":"prune","name":"a","through":9,"actor":"x","reason":"r"})"};
    for (std::string text : texts) {
        for (const auto& [short_form, value] : {std::pair{"\"L\"", &a_lease}, {"\"I\"", &an_id}})
            for (auto at = text.find(short_form); at != std::string::npos; at = text.find(short_form))
                text.replace(at, 3, "\"" + *value + "\"");
        const auto sent = read(text);
        ASSERT_TRUE(sent) << sent.error().message << text;
        EXPECT_EQ(request(sent->request, sent->wait).done().written(), text);
    }
    const auto broken = read(fmt::format(R"({{"op":"break","name":"a","lock_id":"{}"}})", an_id));
    ASSERT_TRUE(broken);
    EXPECT_TRUE(std::holds_alternative<Break>(broken->request)) << "the other name of unlock";
}

TEST(JsonRequests, WhatAPersonLeavesOutIsKnownToBeLeftOut) {
    const auto sent = read(R"({"name":"a","reason":null})", "acquire");
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_FALSE(sent->says("ttl_ms"));
    EXPECT_FALSE(sent->says("lease"));
    EXPECT_FALSE(sent->says("reason")) << "null stands for nothing";
    EXPECT_TRUE(sent->says("name"));
    EXPECT_EQ(std::get<Acquire>(sent->request).ttl, usual);
    const auto again = read(R"({"name":"a"})", "acquire");
    EXPECT_NE(std::get<Acquire>(sent->request).as, std::get<Acquire>(again->request).as)
        << "a lease of its own for each";
}

TEST(JsonRequests, ALeaseOrALockIdIsNeverMadeUpWhereItProvesSomething) {
    for (const char* op : {"renew", "release", "cancel"})
        EXPECT_EQ(request_refusal(R"({"name":"a"})", op), "lease is missing") << op;
    EXPECT_EQ(request_refusal(R"({"name":"a","to":"b"})", "transfer"), "lease is missing");
    for (const char* op : {"unlock", "break", "expire", "override_approve", "override_deny"})
        EXPECT_EQ(request_refusal(R"({"name":"a"})", op), "lock_id is missing") << op;
    EXPECT_EQ(request_refusal(R"({"name":"a"})", "check"), "token is missing");
    EXPECT_EQ(request_refusal(R"({"name":"a"})", "prune"), "through is missing");
    EXPECT_EQ(request_refusal(fmt::format(R"({{"name":"a","lease":"{}"}})", a_lease), "transfer"), "to is missing");
}

TEST(JsonRequests, AFieldThatARequestDoesNotHaveIsRefused) {
    EXPECT_EQ(request_refusal(R"({"name":"a","unles_held":["b"]})", "acquire"),
              "unles_held is not a field of this request");
    EXPECT_EQ(request_refusal(fmt::format(R"({{"name":"a","lease":"{}","ttl_ms":50}})", a_lease), "release"),
              "ttl_ms is not a field of this request");
    EXPECT_EQ(request_refusal(fmt::format(R"({{"name":"a","lock_id":"{}","lease":"x"}})", an_id), "unlock"),
              "lease is not a field of this request");
}

TEST(JsonRequests, AValueThatDoesNotFitIsNamed) {
    const std::map<std::string, std::string> table{
        {R"({})", "name is missing"},
        {R"({"name":7})", "name is not a text"},
        {R"({"name":""})", "name: "},
        {R"({"name":"a\u0000b"})", "name: "},
        {R"({"name":"a/../b"})", "name: "},
        {R"({"name":"a","ttl_ms":"30s"})", "ttl_ms is not a whole number"},
        {R"({"name":"a","ttl_ms":49})", "ttl_ms: "},
        {R"({"name":"a","ttl_ms":1e99})", "ttl_ms is not a whole number"},
        {R"({"name":"a","wait_ms":-1})", "wait_ms is not a whole number"},
        {R"({"name":"a","max_hold_ms":9007199254740992})", "max_hold_ms is not a whole number"},
        {R"({"name":"a","lease":"hunter2"})", "lease: "},
        {R"({"name":"a","unless_held":"b"})", "unless_held is not a list"},
        {R"({"name":"a","unless_held":["b",1]})", "unless_held: "},
        {R"({"name":"a","meta":["b"]})", "meta is not an object"},
        {R"({"name":"a","meta":{"b":1}})", "meta.b is not a text"},
        {R"({"name":"a","holder":{}})", "holder is not a text"},
        {R"([])", "the document is not an object"},
        {R"({"op":"release","name":"a"})", "op is not acquire"},
    };
    for (const auto& [text, message] : table)
        EXPECT_THAT(request_refusal(text, "acquire"), StartsWith(message)) << text;
    EXPECT_EQ(request_refusal(R"({"name":"a","lease":"hunter2"})", "acquire").find("hunter2"), std::string::npos);
    EXPECT_EQ(request_refusal(R"({"name":"a"})"), "op is missing");
    EXPECT_THAT(request_refusal(R"({"op":"steal","name":"a"})"), StartsWith("op is not an operation"));
    EXPECT_EQ(read(R"({"name":""})", "acquire").error().code, Errc::name_invalid);
}

TEST(JsonRequests, ABatchIsRefusedAsAWhole) {
    const auto batch_refusal = [](const std::string& text, std::size_t most = 10) {
        const auto requests = read_batch(*parse(text), usual, most);
        return requests ? "" : requests.error().message;
    };
    const std::string one = R"({"op":"acquire","name":"a"})";
    EXPECT_EQ(batch_refusal(R"({"requests":[]})"), "");
    EXPECT_EQ(batch_refusal(fmt::format(R"({{"requests":[{0},{0}]}})", one), 2), "");
    EXPECT_EQ(batch_refusal(fmt::format(R"({{"requests":[{0},{0},{0}]}})", one), 2),
              "requests has 3 items; 2 are allowed");
    EXPECT_EQ(batch_refusal(fmt::format(R"({{"requests":[{},{{"op":"renew","name":"a"}}]}})", one)),
              "requests[1].lease is missing");
    EXPECT_EQ(batch_refusal(fmt::format(R"({{"requests":[{}],"atomic":true}})", one)),
              "atomic is not a field of this request");
    EXPECT_EQ(batch_refusal("{}"), "requests is missing");
    EXPECT_EQ(batch_refusal(R"({"requests":{}})"), "requests is not a list");
}

}  // namespace
}  // namespace holdfast::json
