// Goal: tickets keep their order and their time, whatever else is in their folder. Method: files that a listing in the
// wrong moment, a crash or an earlier boot would show; and names of tickets, which are part of the format.

#include "file_fixture.hpp"
#include "stores/file/ticket_queue.hpp"

#include <algorithm>

namespace holdfast::stores::file {
namespace {

namespace fs = std::filesystem;

class FileQueue : public FileStoreTest {
protected:
    void SetUp() override { static_cast<void>(granted(*store_, holder_)); }

    [[nodiscard]] Acquire waiting(std::chrono::milliseconds ticket) {
        Acquire request = acquire_of("x", Credentials::random());
        keep_alive(request, ticket);
        return request;
    }
    void keep_alive(Acquire& request, std::chrono::milliseconds ticket) {
        request.ticket = ttl(ticket);
        EXPECT_EQ(refused(*store_, request), Errc::lock_conflict);
    }
    [[nodiscard]] fs::path queue() const { return folder_of("x") / "queue"; }
    [[nodiscard]] std::vector<fs::path> tickets() const {
        std::vector<fs::path> found(fs::directory_iterator(queue()), fs::directory_iterator{});
        std::ranges::sort(found);
        return found;
    }
    [[nodiscard]] std::uint64_t waiters() { return store_->inspect(lock_name("x"), Deadline::never())->waiters; }
    [[nodiscard]] std::optional<LockId> owner() {
        const auto lease = store_->inspect(lock_name("x"), Deadline::never())->lease;
        return lease ? std::optional(lease->lock_id) : std::nullopt;
    }

    const std::unique_ptr<Store> store_ = open();
    const Acquire holder_ = acquire_of("x", Credentials::random(), 1h);
};

// As a listing shows it that is made while the ticket is renamed.
TEST_F(FileQueue, ATicketUnderItsOldAndItsNewNameIsOneAndLastsAsLongAsTheNewOneSays) {
    Acquire first = waiting(5s);
    const fs::path old_name = tickets().at(0);
    clock_.advance(4s);
    keep_alive(first, 5s);
    const fs::path new_name = tickets().at(0);
    ASSERT_NE(old_name, new_name);
    fs::copy_file(new_name, old_name);
    EXPECT_EQ(waiters(), 1U);
    clock_.advance(2s);
    EXPECT_EQ(waiters(), 1U);
    static_cast<void>(granted(*store_, Release{holder_.name, holder_.as}));
    EXPECT_EQ(owner(), first.as.lock_id);
}

TEST_F(FileQueue, ATicketAfterTheDeathOfTheLastIsBehindTheOthers) {
    const Acquire first = waiting(30s);
    static_cast<void>(waiting(1s));
    clock_.advance(2s);
    const Acquire third = waiting(30s);
    static_cast<void>(granted(*store_, Release{holder_.name, holder_.as}));
    EXPECT_EQ(owner(), first.as.lock_id);
    static_cast<void>(granted(*store_, Release{first.name, first.as}));
    EXPECT_EQ(owner(), third.as.lock_id);
}

TEST_F(FileQueue, TicketsOfAnEarlierBootAreRemovedWhenTheQueueIsWritten) {
    static_cast<void>(waiting(30min));
    clock_.reboot();
    EXPECT_EQ(waiters(), 0U);
    static_cast<void>(waiting(30s));
    EXPECT_EQ(tickets().size(), 1U);
    EXPECT_EQ(waiters(), 1U);
}

TEST_F(FileQueue, ATicketThatWasNotFinishedIsNone) {
    static_cast<void>(waiting(30s));
    for (const char* content : {"", "half a tick"}) {
        write_file(queue() / "new", content);
        ASSERT_EQ(chmod((queue() / "new").c_str(), 0600), 0);
        EXPECT_EQ(waiters(), 1U);
    }
    static_cast<void>(waiting(30s));
    EXPECT_EQ(tickets().size(), 2U);
    EXPECT_FALSE(fs::exists(queue() / "new"));
}

TEST_F(FileQueue, AFileThatIsNoTicketBlocksTheLockAndIsNamed) {
    static_cast<void>(waiting(30s));
    const std::string name = tickets().at(0).filename().string();
    std::string short_name = name;
    short_name.pop_back();
    std::string upper = name;
    upper.back() = 'F';
    std::string without_dash = name;
    without_dash.at(20) = '0';
    for (const std::string& other : {std::string("notes.txt"), short_name, upper, without_dash, name + "0"}) {
        EXPECT_FALSE(TicketName::parse(other)) << other;
        write_file(queue() / other, content_of(queue() / name));
        const auto reply = store_->apply_one(acquire_of("x", Credentials::random()), Deadline::never());
        ASSERT_FALSE(reply) << other;
        EXPECT_EQ(reply.error().code, Errc::record_corrupt) << other;
        EXPECT_NE(reply.error().message.find(other), std::string::npos) << reply.error().message;
        fs::remove(queue() / other);
    }
}

// Its content is not what its name says.
TEST_F(FileQueue, ATicketUnderTheNameOfAnotherBlocksTheLock) {
    static_cast<void>(waiting(30s));
    static_cast<void>(waiting(30s));
    const auto before = tickets();
    write_file(before.at(0), content_of(before.at(1)));
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::record_corrupt);
}

TEST(TicketNames, AreWrittenAndReadAsFormat1SaysIt) {
    const TicketName name{.number = 7,
                          .lock_id = LockId::parse("01234567-89ab-4cde-8f01-23456789abcd").value(),
                          .expires_at = Instant{1'700'000'000'123ms},
                          .offset = -5ms,
                          .boot = 0xfeed};
    const std::string text =
        "00000000000000000007-01234567-89ab-4cde-8f01-23456789abcd-0000018bcfe5687b-fffffffffffffffb-000000000000feed";
    EXPECT_EQ(name.text(), text);
    const auto parsed = TicketName::parse(text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->number, name.number);
    EXPECT_EQ(parsed->lock_id, name.lock_id);
    EXPECT_EQ(parsed->expires_at, name.expires_at);
    EXPECT_EQ(parsed->offset, name.offset);
    EXPECT_EQ(parsed->boot, name.boot);
}

}  // namespace
}  // namespace holdfast::stores::file
