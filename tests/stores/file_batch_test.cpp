// Goal: a batch that fails somewhere never says that nothing was changed when something was. Method: something lies in
// the way of one lock's next write, and batches go there by way of other locks.

#include "file_fixture.hpp"

#include <algorithm>

namespace holdfast::stores::file {
namespace {

/// More requests, and more locks, than one part of a batch has.
constexpr int more_requests = 300;
constexpr int more_locks = 40;

class FileBatch : public FileStoreTest {
protected:
    void SetUp() override {
        store_ = open();
        ASSERT_TRUE(store_->apply({}, Deadline::never()));
    }

    [[nodiscard]] Errc failure_of(const std::vector<Request>& batch) {
        const auto replies = store_->apply(batch, Deadline::never());
        EXPECT_FALSE(replies) << "the whole batch was answered";
        return replies ? Errc{} : replies.error().code;
    }
    /// A folder in place of the file that a writer begins with, so that the write fails before it has done anything.
    void block_record(std::string_view name) const {
        std::filesystem::create_directories(folder_of(name) / "record.tmp");
    }
    void block_tickets(std::string_view name) const {
        std::filesystem::create_directories(folder_of(name) / "queue" / "new");
        for (const char* folder : {"queue", "queue/new"})
            std::filesystem::permissions(folder_of(name) / folder, std::filesystem::perms::owner_all);
    }
    [[nodiscard]] Acquire waiter(std::string_view name) const {
        Acquire request = acquire_of(name, Credentials::random());
        request.ticket = ttl(10s);
        return request;
    }
    [[nodiscard]] LockStatus status(std::string_view name) {
        return store_->inspect(lock_name(name), Deadline::never()).value();
    }

    std::unique_ptr<Store> store_;
};

TEST_F(FileBatch, ALaterPartThatFailsBeforeItWritesLeavesTheOutcomeUnknown) {
    static_cast<void>(granted(*store_, acquire_of("later", Credentials::random())));
    block_record("later");
    // The last part has nothing else to write.
    std::vector<Request> batch(more_requests, Check{.name = lock_name("first"), .token = {}});
    batch.front() = acquire_of("first", Credentials::random());
    batch.emplace_back(Break{lock_name("later"), status("later").lease->lock_id, "root", ""});
    EXPECT_EQ(failure_of(batch), Errc::outcome_unknown);
    EXPECT_EQ(status("first").state, LockState::held) << "the part before was applied";
    EXPECT_EQ(status("later").state, LockState::held) << "this one was not";
}

TEST_F(FileBatch, ALaterPartThatFailsAfterOthersOnlyLookedHasChangedNothing) {
    static_cast<void>(granted(*store_, acquire_of("first", Credentials::random())));
    block_record("later");
    std::vector<Request> batch(more_requests, Check{.name = lock_name("first"), .token = status("first").token});
    batch.emplace_back(acquire_of("later", Credentials::random()));
    EXPECT_EQ(failure_of(batch), Errc::store_unavailable);
}

TEST_F(FileBatch, APartWithOtherLocksThatFailsLeavesTheOutcomeUnknown) {
    std::vector<Request> batch{acquire_of("lock-10", Credentials::random())};
    for (int i = 1; i < more_locks; ++i) batch.emplace_back(Check{.name = lock_name("lock-" + std::to_string(10 + i))});
    batch.emplace_back(acquire_of("other", Credentials::random()));
    block_record("other");
    EXPECT_EQ(failure_of(batch), Errc::outcome_unknown);
    EXPECT_EQ(status("lock-10").state, LockState::held);
}

TEST_F(FileBatch, ALockThatFailsAfterAnotherOfItsPartWasWrittenLeavesTheOutcomeUnknown) {
    block_record("b");
    EXPECT_EQ(failure_of({acquire_of("a", Credentials::random()), acquire_of("b", Credentials::random())}),
              Errc::outcome_unknown);
    EXPECT_EQ(status("a").state, LockState::held);
    EXPECT_EQ(status("b").seq, 0U);
}

TEST_F(FileBatch, ALockThatFailsBeforeAnyOtherWasWrittenHasChangedNothing) {
    block_record("a");
    EXPECT_EQ(failure_of({acquire_of("a", Credentials::random()), acquire_of("b", Credentials::random())}),
              Errc::store_unavailable);
    EXPECT_EQ(status("b").seq, 0U);
}

TEST_F(FileBatch, ATicketThatFailsAfterAnotherWasWrittenLeavesTheOutcomeUnknown) {
    for (const char* name : {"a", "b"}) static_cast<void>(granted(*store_, acquire_of(name, Credentials::random())));
    block_tickets("b");
    EXPECT_EQ(failure_of({waiter("a"), waiter("b")}), Errc::outcome_unknown);
    EXPECT_EQ(status("a").waiters, 1U);
}

TEST_F(FileBatch, ATicketThatFailsAfterAnotherWasTakenAwayLeavesTheOutcomeUnknown) {
    static_cast<void>(granted(*store_, acquire_of("a", Credentials::random())));
    const Acquire leaves = waiter("a");
    EXPECT_EQ(refused(*store_, leaves), Errc::lock_conflict);
    block_tickets("a");
    EXPECT_EQ(failure_of({Cancel{leaves.name, leaves.as}, waiter("a")}), Errc::outcome_unknown);
    EXPECT_EQ(status("a").waiters, 0U) << "who left has left";
}

TEST_F(FileBatch, ATicketThatFailsByItselfHasChangedNothing) {
    static_cast<void>(granted(*store_, acquire_of("a", Credentials::random())));
    block_tickets("a");
    EXPECT_EQ(failure_of({waiter("a")}), Errc::store_unavailable);
    EXPECT_EQ(status("a").waiters, 0U);
}

TEST_F(FileBatch, WaitersThatLeaveStayAndComeInOneBatchKeepTheirOrder) {
    const Acquire holder = acquire_of("a", Credentials::random());
    static_cast<void>(granted(*store_, holder));
    const Acquire leaves = waiter("a");
    const Acquire stays = waiter("a");
    const Acquire comes = waiter("a");
    for (const Acquire& request : {leaves, stays}) EXPECT_EQ(refused(*store_, request), Errc::lock_conflict);
    clock_.advance(5s);
    const auto replies =
        store_->apply(std::vector<Request>{comes, stays, Cancel{leaves.name, leaves.as}}, Deadline::never());
    ASSERT_TRUE(replies);
    EXPECT_EQ(status("a").waiters, 2U);
    static_cast<void>(granted(*store_, Release{holder.name, holder.as}));
    EXPECT_EQ(status("a").lease->lock_id, stays.as.lock_id);
    static_cast<void>(granted(*store_, Release{stays.name, stays.as}));
    EXPECT_EQ(status("a").lease->lock_id, comes.as.lock_id);
}

TEST_F(FileBatch, ManyRequestsAreAnsweredInTheirOrderAcrossItsParts) {
    std::vector<Request> batch;
    std::vector<Credentials> owners;
    for (int i = 0; i < more_requests; ++i) {
        owners.push_back(Credentials::random());
        batch.emplace_back(acquire_of("a", owners.back()));
        batch.emplace_back(Release{lock_name("a"), owners.back()});
    }
    const auto replies = store_->apply(batch, Deadline::never());
    ASSERT_TRUE(replies);
    ASSERT_EQ(replies->size(), batch.size());
    FencingToken last{};
    for (std::size_t i = 0; i < owners.size(); ++i) {
        const Reply& reply = replies->at(2 * i);
        ASSERT_TRUE(reply) << reply.error().message;
        EXPECT_EQ(reply->lock.lease->lock_id, owners[i].lock_id);
        EXPECT_GT(reply->lock.token, last);
        last = reply->lock.token;
    }
    EXPECT_EQ(status("a").seq, 2U * more_requests);
    EXPECT_TRUE(verify_chain(store_->history({.name = lock_name("a")}, Deadline::never()).value(), status("a")));
}

}  // namespace
}  // namespace holdfast::stores::file
