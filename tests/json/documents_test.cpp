// Goal: a daemon and its clients understand each other. Method: random hostile values are written and read back and
// must be the same; then single fields are removed, or get another type, and the refusal must name them.
#include "json/documents.hpp"

#include "json/random_values.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::json {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int values = 2000;

Node parsed(const Object& object) {
    auto node = parse(object.done().written());
    EXPECT_TRUE(node) << node.error().message << ": " << object.done().written();
    return node ? std::move(*node) : Node{};
}

bool same(const Error& one, const Error& other) {
    const bool same_holder =
        one.holder == nullptr ? other.holder == nullptr : other.holder != nullptr && *one.holder == *other.holder;
    return one.code == other.code && one.message == other.message && one.hint == other.hint &&
           one.retry_after == other.retry_after && same_holder;
}

TEST(JsonDocuments, ALockIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json locks"));
    for (int i = 0; i < values; ++i) {
        const LockStatus status = random.lock();
        const StoreInfo store = random.store();
        const auto read = read_lock(parsed(lock(status, store)));
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->status, status) << lock(status, store).done().written();
        ASSERT_EQ(read->store_id, store.store_id);
        ASSERT_EQ(read->grade, store.grade);
    }
}

TEST(JsonDocuments, AGrantIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json grants"));
    for (int i = 0; i < values; ++i) {
        const Outcome outcome = random.outcome();
        const Credentials as = Credentials::random();
        const Joined joined = random.maybe() ? Joined::yes : Joined::no;
        const auto read = read_grant(parsed(grant(outcome, as, random.store(), joined)));
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->outcome, outcome);
        ASSERT_EQ(read->as, as);
        ASSERT_EQ(read->joined, joined);
    }
}

TEST(JsonDocuments, AnEventIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json events"));
    std::vector<AuditEvent> all;
    for (int i = 0; i < values; ++i) all.push_back(random.event());
    for (const AuditEvent& each : all) ASSERT_EQ(read_event(parsed(event(each))).value(), each);
    all.erase(all.begin() + 100, all.end());
    EXPECT_EQ(read_events(parsed(events(all))).value(), all);
}

TEST(JsonDocuments, APageOfEventsIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json event pages"));
    for (int i = 0; i < 200; ++i) {
        EventPage page{.events = {random.event(), random.event()}, .next = {random.text()}, .is_last = random.maybe()};
        if (random.maybe()) page.unsettled_since = random.time();
        const auto read = read_event_page(parsed(event_page(page)));
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->events, page.events);
        ASSERT_EQ(read->next, page.next);
        ASSERT_EQ(read->is_last, page.is_last);
        ASSERT_EQ(read->unsettled_since, page.unsettled_since);
    }
    const EventPage endless{.next = {std::string(EventCursor::longest + 1, 'c')}};
    EXPECT_THAT(read_event_page(parsed(event_page(endless))).error().message, HasSubstr("cursor"));
}

TEST(JsonDocuments, AListOfLocksIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json lists"));
    const std::vector<LockStatus> all{random.lock(), random.lock(), random.lock()};
    EXPECT_EQ(read_locks(parsed(locks(all, random.store()))).value(), all);
    EXPECT_FALSE(read_locks(parsed(Object())));
}

TEST(JsonDocuments, AStoreIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json stores"));
    for (int i = 0; i < 200; ++i) {
        const StoreInfo info = random.store();
        StoreProperties properties{.is_shared = random.maybe(),
                                   .has_sessions = random.maybe(),
                                   .pushes = random.maybe(),
                                   .commits_batches_as_one = random.maybe(),
                                   .shows_only_durable = random.maybe(),
                                   .clock_resolution = random.duration()};
        if (random.maybe()) properties.largest_value = random.number_below(1 << 30);
        const Finding finding{.name = random.text(), .ok = random.maybe(), .detail = random.text()};
        const auto read = read_store(parsed(examination(info, properties, {finding})));
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->info.url, info.url);
        ASSERT_EQ(read->info.store_id, info.store_id);
        ASSERT_EQ(read->info.grade, info.grade);
        ASSERT_EQ(read->info.reasons, info.reasons);
        ASSERT_EQ(examination(info, read->properties, read->findings).done().written(),
                  examination(info, properties, {finding}).done().written());
    }
}

TEST(JsonDocuments, ThatAStoreIsLostIsReadAsItWasWritten) {
    Error lost{Errc::store_unavailable, "it was emptied"};
    EXPECT_FALSE(read_error(parsed(error(lost, "", std::nullopt)))->store_is_lost);
    lost.store_is_lost = true;
    EXPECT_TRUE(read_error(parsed(error(lost, "", std::nullopt)))->store_is_lost);
}

TEST(JsonDocuments, AnErrorIsReadAsItWasWritten) {
    RandomValues random(tests::seed_of("json errors"));
    for (int i = 0; i < values; ++i) {
        const Error written = random.error();
        const auto read = read_error(parsed(error(written, written.hint, random.store())));
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_TRUE(same(*read, written)) << error(written, written.hint, random.store()).done().written();
    }
}

TEST(JsonDocuments, RepliesKeepTheirEndings) {
    RandomValues random(tests::seed_of("json replies"));
    std::vector<Reply> all;
    for (int i = 0; i < 200; ++i)
        all.push_back(random.maybe() ? Reply(random.outcome()) : Reply(std::unexpected(random.error())));
    const auto read = read_replies(parsed(replies(all, random.store())));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ((*read)[i].has_value(), all[i].has_value());
        if (all[i]) {
            EXPECT_EQ(*(*read)[i], *all[i]);
        } else {
            EXPECT_TRUE(same((*read)[i].error(), all[i].error()));
        }
    }
}

TEST(JsonDocuments, DirectionMarksAreEscapedInTheTextAndWholeInTheValue) {
    LockStatus status{.name = *LockName::parse("a\xe2\x80\xae"
                                               "b")};
    const std::string text = lock(status, {}).done().written();
    EXPECT_THAT(text, HasSubstr("a\\u202eb"));
    EXPECT_EQ(read_lock(*parse(text)).value().status.name, status.name);
}

/// `node` with the field `key` replaced, or removed.
Node with(const Node& node, std::string_view key, const std::optional<Node>& instead) {
    Node::Object object;
    for (const Member& member : *node.object()) {
        if (member.key != key)
            object.push_back(member);
        else if (instead)
            object.push_back({member.key, *instead});
    }
    return {std::move(object)};
}

/// Every field that must be there is named when it is missing, and every one when it is an object of numbers.
template <class Read>
void expect_refusals(const Node& node, const std::vector<std::string>& optional, Read read) {
    const Node wrong{Node::Object{{"x", Node{std::int64_t{1}}}}};
    for (const Member& member : *node.object()) {
        const bool is_optional = std::ranges::find(optional, member.key) != optional.end();
        const auto without = read(with(node, member.key, std::nullopt));
        EXPECT_EQ(without.has_value(), is_optional) << member.key;
        if (!without) {
            EXPECT_EQ(without.error().code, Errc::usage);
            EXPECT_THAT(without.error().message, StartsWith(member.key)) << member.key;
        }
        if (member.key == "expires_in_ms") continue;  // Follows from two other fields and is not read.
        const auto replaced = read(with(node, member.key, wrong));
        ASSERT_FALSE(replaced) << member.key;
        EXPECT_THAT(replaced.error().message, StartsWith(member.key));
    }
    EXPECT_TRUE(read(node));
    Node more = node;
    std::get<Node::Object>(more.value).push_back({"of_a_newer_version", Node{true}});
    EXPECT_TRUE(read(more)) << "a field that is not known is passed over";
}

LockStatus full_lock(RandomValues& random) {
    while (true) {
        LockStatus status = random.lock();
        if (status.lease && status.lease->max_until && !status.lease->meta.empty() && status.override_request)
            return status;
    }
}

TEST(JsonDocuments, AFieldThatDoesNotFitIsNamed) {
    RandomValues random(1);
    const LockStatus status = full_lock(random);
    const std::vector<std::string> optional{"user",      "operation", "reason",   "expires_in_ms",
                                            "max_until", "override",  "store_id", "meta"};
    expect_refusals(parsed(lock(status, random.store())), optional, [](const Node& node) { return read_lock(node); });
    expect_refusals(parsed(event(random.event())), {"holder", "user", "actor", "reason", "details"},
                    [](const Node& node) { return read_event(node); });

    const auto held = parsed(lock(status, {}));
    EXPECT_THAT(read_lock(with(held, "state", Node{std::string("free")})).error().message, StartsWith("lock_id "));
    EXPECT_THAT(read_lock(with(held, "state", Node{std::string("stolen")})).error().message, StartsWith("state "));
    EXPECT_THAT(read_lock(with(held, "lock_id", Node{})).error().message, StartsWith("lock_id "));
    EXPECT_THAT(read_lock(held, "locks[7]").value().status.name, status.name);
    EXPECT_THAT(read_lock(with(held, "token", Node{}), "locks[7]").error().message, StartsWith("locks[7].token "));
    const auto ask = std::ranges::find(*held.object(), "override", &Member::key);
    const Node without_ttl = with(ask->node, "ttl_ms", std::nullopt);
    EXPECT_EQ(read_lock(with(held, "override", without_ttl)).error().message, "override.ttl_ms is missing");
}

TEST(JsonDocuments, AnErrorWithACodeThatNobodyKnowsIsRefused) {
    const auto refused = [](std::string_view text) {
        const auto read = read_error(*parse(text));
        return read ? "" : read.error().message;
    };
    EXPECT_THAT(refused(R"({"error":{"code":"E_NEW","message":"x"}})"), StartsWith("error.code "));
    EXPECT_EQ(refused(R"({"error":{"code":"E_USAGE"}})"), "error.message is missing");
    EXPECT_EQ(refused(R"({"error":{"code":"E_USAGE","message":"x","holder":{}}})"), "error.holder.name is missing");
    EXPECT_EQ(refused(R"({"error":[]})"), "error is not an object");
    EXPECT_EQ(refused("{}"), "error is missing");
    EXPECT_EQ(refused(R"({"error":{"code":"E_USAGE","message":"x"}})"), "");
}

}  // namespace
}  // namespace holdfast::json
