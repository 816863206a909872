// Goal: `doctor` names what blocks a lock of a file store, and claims to have read no more than it has. Method: a whole
// store, and one thing wrong in it.

#include "file_fixture.hpp"

#include <gmock/gmock.h>

namespace holdfast::stores::file {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileExamination : public FileStoreTest {
protected:
    void SetUp() override {
        for (const char* name : {"x", "y"})
            static_cast<void>(granted(*store_, acquire_of(name, Credentials::random(), 1h)));
        Acquire waiting = acquire_of("x", Credentials::random());
        waiting.ticket = ttl(30s);
        EXPECT_EQ(refused(*store_, waiting), Errc::lock_conflict);
    }
    [[nodiscard]] Finding records(Deadline deadline = Deadline::never()) {
        for (Finding& finding : store_->examine(deadline))
            if (finding.name == "records") return finding;
        return {"records", false, "nobody looked at them"};
    }
    void expect_named(const fs::path& culprit) {
        EXPECT_FALSE(records().ok) << culprit;
        EXPECT_THAT(records().detail, HasSubstr(culprit.string()));
    }

    const std::unique_ptr<Store> store_ = open();
};

TEST_F(FileExamination, CountsTheLocksThatItRead) {
    EXPECT_TRUE(records().ok);
    EXPECT_EQ(records().detail, "all 2 can be read");
}

TEST_F(FileExamination, ClaimsNoMoreThanItHadTimeFor) {
    EXPECT_EQ(records(Deadline{clock_.boottime()}).detail, "the first 0 of 2 can be read");
}

TEST_F(FileExamination, NamesATicketThatCannotBeRead) {
    const fs::path ticket = fs::directory_iterator(folder_of("x") / "queue")->path();
    write_file(ticket, content_of(ticket) + "x");
    expect_named(ticket);
    // Once it is dead, nobody reads it any more, and it blocks nobody.
    clock_.advance(31s);
    EXPECT_TRUE(records().ok) << records().detail;
}

TEST_F(FileExamination, NamesAFileThatIsNoTicket) {
    write_file(folder_of("y") / "record.tmp", "");
    EXPECT_TRUE(records().ok) << "left over from a change that broke off";
    write_file(folder_of("x") / "queue" / "notes", "");
    expect_named(folder_of("x") / "queue" / "notes");
}

TEST_F(FileExamination, NamesWhatIsNoFolderOfALock) {
    fs::create_directory(dir() / "locks" / "backup", folder_of("x"));
    expect_named(dir() / "locks" / "backup");
}

TEST_F(FileExamination, NamesARecordThatIsMissingOrOfAnotherLock) {
    const std::string intact = content_of(folder_of("x") / "record");
    write_file(folder_of("x") / "record", content_of(folder_of("y") / "record"));
    expect_named(folder_of("x") / "record");
    write_file(folder_of("x") / "record", intact);
    fs::create_directory(folder_of("z"), folder_of("x"));
    write_file(folder_of("z") / "audit.1", "");
    expect_named(folder_of("z") / "record");
}

}  // namespace
}  // namespace holdfast::stores::file
