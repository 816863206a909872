// No name of a lock reaches another lock, a file outside the store, or a statement.
#include "conformance/store_conformance.hpp"

#include <algorithm>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

std::string repeat(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

/// Names that have hurt somebody: quoting, paths, case, blanks, Unicode forms, prefixes of each other.
std::vector<std::string> awkward_names() {
    return {"a'; DROP TABLE x;--",
            "a'; DROP TABLE locks;--",
            "redis.call",
            "redis.call('FLUSHALL')",
            "\"",
            "`",
            "\\",
            "%",
            "_",
            "a%",
            "a_",
            "ab",
            "a*",
            "a?b",
            "X",
            "x",
            "x ",
            " x",
            "x/",
            "/x",
            "x//",
            "x/.y",
            "...",
            "..x",
            "/etc/passwd",
            "/abs",
            "a/...b",
            "a/b",
            "a\\b",
            "%2e",
            "%2e%2e",
            "%2F",
            "%00",
            "-",
            "--",
            "-rf",
            "~",
            "~root",
            "$HOME",
            "${x}",
            "$(id)",
            "CON",
            "nul",
            "lost+found",
            ".tmp",
            "tmp",
            "lock",
            "record",
            "store",
            "x.lock",
            "x.tmp",
            "é",
            "e\xcc\x81",
            "ß",
            "SS",
            "İ",
            "i",
            "ı",
            "日本",
            "👩‍👩‍👧",
            "\xef\xbb\xbfx",
            "a\u200b",
            "p",
            "p/",
            "p/q",
            "p/q/r",
            "p/qr",
            "pp",
            repeat("a", 255),
            repeat("a", 254),
            repeat("é", 127),
            repeat("日", 85),
            repeat("/", 255),
            repeat(".", 255),
            repeat(".../", 63),
            repeat("%", 255)};
}

}  // namespace

// A collation takes X for x, or x for 'x ', a file system does so with other letters, and some cut what is too long.
// Two locks that become one let nobody in, or end with each other's release.
TEST_P(StoreConformance, EveryNameIsALockOfItsOwnAndComesBackByteForByte) {
    const std::vector<std::string> names = awkward_names();
    std::vector<Acquire> grants;
    for (const std::string& name : names) {
        grants.push_back(by_alice(lock(name)));
        ASSERT_THAT(apply(grants.back()), Granted()) << name;
    }
    std::vector<std::string> expected = names;
    std::ranges::sort(expected);

    std::vector<std::string> listed;
    for (const LockStatus& status : must(store().list({}, soon()))) listed.push_back(status.name.text());
    EXPECT_EQ(listed, expected) << "in the order of bytes";

    for (const Acquire& grant : grants) {
        const LockStatus status = inspect(grant.name);
        EXPECT_EQ(status.name, grant.name);
        ASSERT_TRUE(status.lease) << grant.name.text();
        EXPECT_EQ(status.lease->lock_id, grant.as.lock_id) << grant.name.text();
        EXPECT_EQ(history(grant.name).size(), 1U) << grant.name.text();
        expect_whole_chain(grant.name);
    }
    for (const Acquire& grant : grants) {
        EXPECT_THAT(apply(by_bob(grant.name)), RefusedWith(Errc::lock_conflict)) << grant.name.text();
        EXPECT_THAT(apply(release(grant)), Granted()) << grant.name.text();
    }
    EXPECT_THAT(must(store().list({}, soon())), testing::IsEmpty());
}

TEST_P(StoreConformance, ReleasingOneNameLeavesItsNeighboursHeld) {
    for (const char* name : {"X", "x", "x ", "x/", "x/y", "xx"}) granted(by_alice(lock(name)));
    const Acquire other = by_bob(lock("x/yy"));
    granted(other);
    granted(release(other));
    EXPECT_EQ(must(store().list({}, soon())).size(), 6U);
}

TEST_P(StoreConformance, TextOfAnyKindComesBackByteForByte) {
    Acquire request = by_alice(lock("x"));
    request.holder = {"o'hara \"q\" \\ %s {} 日本", "<b>user</b>"};
    request.operation = "'; DELETE FROM audit;--";
    request.reason = "line one\nline two\ttab " + repeat("é", 400);
    request.meta = {{"k'\"", "v\n\r\t"}, {"big", repeat("x", 3000)}};
    granted(request);
    const LockStatus status = inspect(lock("x"));
    EXPECT_EQ(status.lease->holder, request.holder);
    EXPECT_EQ(status.lease->operation, request.operation);
    EXPECT_EQ(status.lease->reason, request.reason);
    EXPECT_EQ(status.lease->meta, request.meta);
    EXPECT_EQ(history(lock("x")).front().reason, request.reason);
    expect_whole_chain(lock("x"));
}

}  // namespace holdfast::tests
