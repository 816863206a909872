// The file of API tokens: what is in it, who may have written it, and what a daemon makes of it while it changes.
#include "access/token_file.hpp"

#include "access/token_book.hpp"
#include "support/isolation.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace holdfast::access {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class TokenFile : public testing::Test {
protected:
    tests::TempFolder folder;
    const std::string path = (folder.path() / "tokens").string();
    ManualClock clock{Instant{std::chrono::milliseconds{1'800'000'000'000}}};

    CreatedToken create(NewToken wanted = {.user = "alice", .grants = {{Role::holder, "team"}}}) {
        auto created = create_token(path, wanted, host_clock(), Deadline::in(host_clock(), std::chrono::seconds{20}));
        EXPECT_TRUE(created) << (created ? "" : created.error().message);
        return created ? *created : CreatedToken{};
    }
    void revoke(const std::string& id) {
        EXPECT_TRUE(revoke_token(path, id, host_clock(), Deadline::in(host_clock(), std::chrono::seconds{20})));
    }
    std::string content() const {
        std::ifstream in(path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void write(const std::string& text) const { std::ofstream(path) << text; }
};

TEST_F(TokenFile, HasNoTokenAndNobodyElseCanReadIt) {
    umask(0);
    const CreatedToken created = create();
    umask(022);
    EXPECT_THAT(created.token, SizeIs(4 + 12 + 1 + 64));
    EXPECT_THAT(content(), Not(HasSubstr(created.token.substr(17))));
    EXPECT_THAT(content(), HasSubstr("alice"));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        EXPECT_EQ(entry.status().permissions(), std::filesystem::perms{0600}) << entry.path();
}

TEST_F(TokenFile, IsReadAsItWasWritten) {
    const CreatedToken forever =
        create({.user = "al\"ice \xc3\xbc", .grants = {{Role::viewer, ""}, {Role::admin, "\\a"}}});
    const CreatedToken proxy = create({.user = "*", .grants = {{Role::viewer, ""}}, .by_proxy = true});
    const CreatedToken hour = create({.user = "ci", .grants = {{Role::holder, "x"}}, .lasts = std::chrono::hours{1}});
    EXPECT_EQ(proxy.token, "");
    const auto read = read_tokens(path);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_THAT(read->entries, testing::ElementsAre(forever.entry, proxy.entry, hour.entry));
    EXPECT_EQ(*hour.entry.expires_at, hour.entry.created_at + std::chrono::hours{1});
}

TEST_F(TokenFile, KeepsWhatTwoAddAtOnce) {
    constexpr int each = 20;
    {
        std::vector<std::jthread> writers;
        for (int writer = 0; writer < 3; ++writer)
            writers.emplace_back([this] {
                for (int i = 0; i < each; ++i) create();
            });
    }
    const auto read = read_tokens(path);
    ASSERT_TRUE(read);
    EXPECT_THAT(read->entries, SizeIs(3 * each));
}

TEST_F(TokenFile, RefusesTokensThatWouldBeGoodForNothingOrTooMuch) {
    const std::vector<Grant> some{{Role::viewer, ""}};
    for (const NewToken& wanted :
         {NewToken{.user = "", .grants = some}, NewToken{.user = "a\nb", .grants = some},
          NewToken{.user = " a", .grants = some}, NewToken{.user = "\xff", .grants = some},
          NewToken{.user = std::string(201, 'x'), .grants = some}, NewToken{.user = "*", .grants = some},
          NewToken{.user = "a"}, NewToken{.user = "a", .grants = some, .lasts = std::chrono::milliseconds{0}},
          NewToken{.user = "a", .grants = some, .lasts = std::chrono::milliseconds::max()}}) {
        const auto created = create_token(path, wanted, host_clock(), Deadline::never());
        ASSERT_FALSE(created) << wanted.user;
        EXPECT_EQ(created.error().code, Errc::usage);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TokenFile, ThatIsDamagedIsRefusedWhole) {
    const CreatedToken created = create();
    const std::string good = content();
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        EXPECT_NE(text.find(from), std::string::npos) << from;
        return text.replace(text.find(from), from.size(), to);
    };
    for (const std::string& bad :
         {std::string(), good.substr(0, good.size() / 2), good + good, good.substr(1), std::string("[]"),
          replaced("holder:team", "holder:"), replaced("holder:team", "root"), replaced("\"user\"", "\"usr\""),
          replaced("sha256", "sha1"), replaced("\"by_proxy\":false", "\"by_proxy\":true"),
          replaced("\"by_proxy\":false", "\"by_proxy\":0"), replaced(created.entry.id, "0"),
          replaced("\"expires_at\":null", "\"expires_at\":\"tomorrow\""),
          replaced("\"expires_at\":null", "\"expires_at\":null,\"only_from\":\"10.0.0.0/8\"")}) {
        write(bad);
        const auto read = read_tokens(path);
        ASSERT_FALSE(read) << bad;
        EXPECT_EQ(read.error().code, Errc::config) << bad;
        EXPECT_FALSE(TokenBook(path, host_clock()).by_token(created.token)) << bad;
    }
    write(replaced("\"format\":1", "\"format\":2"));
    EXPECT_EQ(read_tokens(path).error().code, Errc::format_unsupported);
    write(good);
    EXPECT_TRUE(TokenBook(path, host_clock()).by_token(created.token));
}

TEST_F(TokenFile, ThatOthersCanWriteIsRefused) {
    const CreatedToken created = create();
    for (const unsigned mode : {0620U, 0602U, 0666U}) {
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
        EXPECT_EQ(read_tokens(path).error().code, Errc::store_unsafe) << mode;
        EXPECT_FALSE(TokenBook(path, host_clock()).by_token(created.token)) << mode;
        EXPECT_FALSE(
            create_token(path, {.user = "b", .grants = {{Role::viewer, ""}}}, host_clock(), Deadline::never()));
    }
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
    EXPECT_EQ(read_tokens(path).error().code, Errc::store_unsafe) << "anybody could swap it";
    ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
    EXPECT_TRUE(read_tokens(path));
}

TEST_F(TokenFile, OfAnotherUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << tests::not_here << "only root can give a file away";
    const CreatedToken created = create();
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(read_tokens(path).error().code, Errc::store_unsafe);
    EXPECT_FALSE(TokenBook(path, host_clock()).by_token(created.token));
}

TEST_F(TokenFile, ThatIsALinkIsReadAndNotReplaced) {
    const std::string link = (folder.path() / "link").string();
    const CreatedToken created = create();
    std::filesystem::create_symlink(path, link);
    EXPECT_TRUE(TokenBook(link, host_clock()).by_token(created.token));
    EXPECT_FALSE(create_token(link, {.user = "b", .grants = {{Role::viewer, ""}}}, host_clock(), Deadline::never()));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(TokenFile, ThatIsAPipeIsNotWaitedFor) {
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(read_tokens(path).error().code, Errc::store_unsafe);
}

TEST_F(TokenFile, IsReadAgainWhenItChanges) {
    TokenBook book(path, host_clock());
    EXPECT_FALSE(book.by_token(ApiToken::random().text));
    ASSERT_TRUE(book.problem()) << "there is no file";
    // Many changes within the resolution of the file system's clock: each must be seen.
    for (int i = 0; i < 50; ++i) {
        const CreatedToken created = create();
        const auto who = book.by_token(created.token);
        ASSERT_TRUE(who) << i;
        EXPECT_EQ(who->user, "alice");
        EXPECT_EQ(who->grants, created.entry.grants);
        EXPECT_FALSE(book.problem());
        revoke(created.entry.id);
        ASSERT_FALSE(book.by_token(created.token)) << i;
        ASSERT_FALSE(book.again(*who)) << "a stream that is open ends";
    }
    const CreatedToken last = create();
    ASSERT_TRUE(book.by_token(last.token));
    std::filesystem::remove(path);
    EXPECT_FALSE(book.by_token(last.token)) << "a file that is gone lets nobody in";
}

TEST_F(TokenFile, AChangedGrantCountsForAStreamThatIsOpen) {
    TokenBook book(path, host_clock());
    const CreatedToken created = create();
    auto who = book.by_token(created.token);
    ASSERT_TRUE(who);
    who->auth = Auth::cookie;
    who->address = "10.0.0.7";
    std::string text = content();
    write(text.replace(text.find("holder:team"), 11, "viewer:team"));
    const auto again = book.again(*who);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->grants, (std::vector<Grant>{{Role::viewer, "team"}}));
    EXPECT_EQ(again->auth, Auth::cookie);
    EXPECT_EQ(again->address, "10.0.0.7");
}

TEST_F(TokenFile, ATokenThatHasExpiredIsRefused) {
    const auto created = create_token(
        path, {.user = "a", .grants = {{Role::viewer, ""}}, .lasts = std::chrono::hours{1}}, clock, Deadline::never());
    ASSERT_TRUE(created);
    TokenBook book(path, clock);
    const auto who = book.by_token(created->token);
    ASSERT_TRUE(who);
    clock.advance(std::chrono::hours{1} - std::chrono::milliseconds{1});
    EXPECT_TRUE(book.by_token(created->token));
    clock.advance(std::chrono::milliseconds{1});
    EXPECT_FALSE(book.by_token(created->token));
    EXPECT_FALSE(book.again(*who));
}

TEST_F(TokenFile, AWrongTokenIsRefusedInTheSameWordsWhateverIsWrong) {
    const CreatedToken created = create();
    TokenBook book(path, host_clock());
    std::string last = created.token;
    last.back() = last.back() == '0' ? '1' : '0';
    std::string other_id = created.token;
    other_id[4] = other_id[4] == '0' ? '1' : '0';
    std::string upper = created.token;
    for (char& c : upper) c = static_cast<char>(toupper(c));
    std::set<std::string> words;
    for (const std::string& text :
         {std::string(), std::string("hft_"), created.entry.id, last, other_id, upper, created.token + " ",
          " " + created.token, created.token.substr(0, 80), created.token + created.token, std::string(81, 'a')}) {
        const auto who = book.by_token(text);
        ASSERT_FALSE(who) << text;
        EXPECT_EQ(who.error().code, Errc::denied);
        words.insert(who.error().message);
    }
    EXPECT_THAT(words, SizeIs(1));
    EXPECT_TRUE(book.by_token(created.token));
}

TEST_F(TokenFile, ListsNoHash) {
    const CreatedToken created = create();
    EXPECT_THAT(token_document(created.entry).done().written(), Not(HasSubstr("sha256")));
}

TEST_F(TokenFile, AUserOfAProxyHasTheRightsOfItsOwnEntriesOnly) {
    create({.user = "alice", .grants = {{Role::admin, ""}}});
    create({.user = "alice", .grants = {{Role::holder, "a"}}, .by_proxy = true});
    create({.user = "alice", .grants = {{Role::viewer, ""}}, .by_proxy = true});
    TokenBook book(path, host_clock());
    const auto alice = book.by_user("alice");
    ASSERT_TRUE(alice);
    EXPECT_EQ(alice->grants, (std::vector<Grant>{{Role::holder, "a"}, {Role::viewer, ""}}))
        << "the rights of her token need the token";
    EXPECT_EQ(alice->auth, Auth::proxy);
    for (const char* other : {"bob", "Alice", "alice ", "", "*"}) EXPECT_FALSE(book.by_user(other)) << other;

    create({.user = "*", .grants = {{Role::viewer, "public"}}, .by_proxy = true});
    EXPECT_EQ(book.by_user("bob")->grants, (std::vector<Grant>{{Role::viewer, "public"}}));
    EXPECT_EQ(book.by_user("alice")->grants, alice->grants);
    EXPECT_FALSE(book.by_user("*"));
    EXPECT_FALSE(book.by_user(""));
}

}  // namespace
}  // namespace holdfast::access
