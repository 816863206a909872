// Goal: the audit log of a repository grows by whole lines, and every line that was altered, added or taken out is
// found.
#include "guards/worktree/audit_chain.hpp"

#include "guards/worktree/files.hpp"
#include "guards/worktree/repository.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace holdfast::guards::worktree {
namespace {

class AuditChain : public testing::Test {
protected:
    AuditChain() : fd_(*open_folder(folder_.path().string())) {}

    void append(const std::string& what) {
        json::WorktreeEvent event;
        event.event = what;
        event.actor = "somebody";
        const auto appended = append_event(fd_.get(), event);
        ASSERT_TRUE(appended) << appended.error().message;
    }
    std::string text() {
        std::ifstream in(folder_.path() / audit_file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void put(const std::string& text) { std::ofstream(folder_.path() / audit_file, std::ios::binary) << text; }

    tests::TempFolder folder_;
    Fd fd_;
};

TEST_F(AuditChain, CountsItsEvents) {
    EXPECT_EQ(*verify_audit(fd_.get()), 0U);
    for (const char* what : {"one", "two", "three"}) append(what);
    EXPECT_EQ(*verify_audit(fd_.get()), 3U);
    const auto last = last_event(fd_.get());
    ASSERT_TRUE(last && *last);
    EXPECT_EQ((*last)->event.event, "three");
    EXPECT_EQ((*last)->event.seq, 3U);
}

TEST_F(AuditChain, FindsEveryChange) {
    for (const char* what : {"one", "two", "three"}) append(what);
    const std::string whole = text();
    const auto second = whole.find('\n') + 1;
    const auto third = whole.find('\n', second) + 1;
    for (const std::string& changed : {whole.substr(second), whole.substr(0, second) + whole.substr(third),
                                       whole.substr(0, second) + whole.substr(0, second) + whole.substr(second),
                                       std::string(whole).replace(whole.find("two"), 3, "owt"), "x" + whole}) {
        put(changed);
        const auto verified = verify_audit(fd_.get());
        ASSERT_FALSE(verified) << changed;
        EXPECT_EQ(verified.error().code, Errc::audit_chain_broken);
    }
}

TEST_F(AuditChain, ALineThatWasBeingWrittenDoesNotCount) {
    append("one");
    const std::string whole = text();
    append("two");
    put(whole + text().substr(whole.size(), 20));
    EXPECT_EQ(*verify_audit(fd_.get()), 1U);
    append("again");
    EXPECT_EQ(*verify_audit(fd_.get()), 2U);
}

TEST_F(AuditChain, NothingIsAppendedToAnAlteredEnd) {
    append("one");
    put(std::string(text()).replace(text().find("somebody"), 8, "nobodyyy"));
    json::WorktreeEvent event;
    event.event = "two";
    const auto refused = append_event(fd_.get(), event);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::audit_chain_broken);
}

}  // namespace
}  // namespace holdfast::guards::worktree
