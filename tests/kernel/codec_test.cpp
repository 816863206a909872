// The byte form of records, tickets and events: exact, complete, and safe against anything that is not it.

#include "kernel/codec.hpp"

#include "kernel/little_store.hpp"
#include "support/run_settings.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <random>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using namespace kernel;

Digest digest(std::uint8_t fill) {
    Digest value{};
    value.fill(fill);
    return value;
}

LockId lock_id(std::uint8_t fill) {
    LockId::Bytes bytes{};
    bytes.fill(fill);
    return LockId(bytes);
}

const Instant day{std::chrono::milliseconds{1'700'000'000'123}};

/// Every optional part present, and every text different.
Record full_record() {
    Record record = blank(lock("migrate/prod"));
    record.token = {1'700'000'000'124};
    HeldLease held;
    held.lease.lock_id = lock_id(1);
    held.lease.token = {1'700'000'000'123};
    held.lease.holder = {"web-3:ci:812:4711", "dana"};
    held.lease.operation = "migrate up";
    held.lease.reason = "r\xc3\xa9lease\n7";
    held.lease.ttl = 30s;
    held.lease.acquired_at = day;
    held.lease.renewed_at = day + 1s;
    held.lease.renew_seq = 9;
    held.lease.expires_at = day + 31s;
    held.lease.max_until = day + 1h;
    held.lease.meta = {{"a", ""}, {"b", "2"}};
    held.key_hash = {digest(2)};
    record.held = held;
    record.ended = Ended{lock_id(3), {digest(4)}, Ending::stolen};
    record.pending = PendingAsk{{lock_id(5), {"bob", "b"}, "hotfix", 20s, day + 2s, day + 62s}, {digest(6)}};
    record.seq = 17;
    record.chain = digest(7);
    record.changed_at = day + 3s;
    record.pruned_seq = 5;
    return record;
}

Ticket full_ticket() {
    return {lock_id(1), {digest(2)}, 3, {"bob", "b"}, day, day + 10s, Claim{"deploy", "v2", 30s, 1h, {{"a", "b"}}}};
}

AuditEvent full_event() {
    AuditEvent event{.name = lock("migrate/prod")};
    event.seq = 4;
    event.at = day;
    event.kind = EventKind::broken;
    event.token = {77};
    event.lock_id = lock_id(1);
    event.holder = {"alice", "a"};
    event.actor = "root";
    event.reason = "stuck";
    event.details = {{"from_holder", "alice"}, {"from_token", "76"}};
    event.prev_hash = digest(8);
    event.hash = hash_of(event);
    return event;
}

std::vector<Record> records() {
    std::vector<Record> all{blank(lock("x")), full_record(), full_record(), full_record(), full_record()};
    all[2].held.reset();
    all[3].ended.reset();
    all[4].pending.reset();
    all[4].held->lease.max_until.reset();
    all[4].held->lease.meta.clear();
    return all;
}

TEST(CodecTest, RecordsComeBackAsTheyWere) {
    for (const Record& record : records()) EXPECT_EQ(decode_record(encode(record)), record);
}

TEST(CodecTest, EveryWayALeaseEndedComesBack) {
    for (const Ending how : {Ending::released, Ending::stolen, Ending::broken, Ending::transferred}) {
        Record record = full_record();
        record.ended->how = how;
        EXPECT_EQ(decode_record(encode(record)), record);
    }
}

TEST(CodecTest, ARecordCannotHaveLostItsNewestEvent) {
    Record record = full_record();
    record.pruned_seq = record.seq - 1;
    EXPECT_EQ(decode_record(encode(record)), record);
    record.pruned_seq = record.seq;
    EXPECT_FALSE(decode_record(encode(record)));
}

TEST(CodecTest, TicketsComeBackAsTheyWere) {
    Ticket ticket = full_ticket();
    EXPECT_EQ(decode_ticket(encode(ticket)), ticket);
    ticket.claim->max_hold.reset();
    EXPECT_EQ(decode_ticket(encode(ticket)), ticket);
    ticket.claim->address = "10.0.0.7";
    EXPECT_EQ(decode_ticket(encode(ticket)), ticket);
    // Where there is none, none is written: no ticket has two forms.
    ticket.claim->address.clear();
    Bytes bytes = encode(ticket);
    bytes.insert(bytes.end(), 8, 0);
    EXPECT_FALSE(decode_ticket(bytes));
    ticket.claim.reset();
    EXPECT_EQ(decode_ticket(encode(ticket)), ticket);
}

TEST(CodecTest, EventsOfEveryKindComeBackAsTheyWere) {
    for (std::uint8_t kind = 1; kind <= static_cast<std::uint8_t>(newest_event_kind); ++kind) {
        AuditEvent event = full_event();
        event.kind = static_cast<EventKind>(kind);
        EXPECT_EQ(decode_event(encode(event)), event);
    }
}

TEST(CodecTest, TimesBefore1970ComeBack) {
    Ticket ticket = full_ticket();
    ticket.enqueued_at = Instant{-5ms};
    EXPECT_EQ(decode_ticket(encode(ticket)), ticket);
}

// A change of the byte form makes every stored lock unreadable and every audit chain broken. If this
// fails on purpose, the format's version must rise with it.
TEST(CodecTest, TheByteFormStaysWhatItIs) {
    EXPECT_EQ(to_hex(sha256(encode(full_record()))),
              "687a685115bec732d50aaddd045c8ae4c13060b9375c7995345c2d7fcbf7dc65");
    EXPECT_EQ(to_hex(sha256(encode(full_ticket()))),
              "48bee69ce0846fddee99a1e8b75c56786fbb06da5c65bda5ab953ff8f2143fa8");
    EXPECT_EQ(to_hex(full_event().hash), "42d281b3a64bd2a78bf3647df6bc739be042a83eca4f30944e6e47e076aa8f21");
}

template <class Decode>
void expect_only_whole(const Bytes& bytes, Decode decode) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode(std::span(bytes).first(size))) << "cut to " << size << " of " << bytes.size();
    Bytes longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(decode(longer));
    longer.insert(longer.end(), bytes.begin(), bytes.end());
    EXPECT_FALSE(decode(longer));
}

TEST(CodecTest, CutAndTrailingBytesAreRejected) {
    for (const Record& record : records()) expect_only_whole(encode(record), decode_record);
    expect_only_whole(encode(full_ticket()), decode_ticket);
    expect_only_whole(encode(full_event()), decode_event);
}

/// Puts `number` over eight bytes at every offset in turn: over lengths and counts among others.
template <class Decode, class Encode>
void expect_survives_numbers(const Bytes& bytes, Decode decode, Encode encode_again) {
    for (const std::uint64_t number : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 62,
                                       std::uint64_t{1} << 32, std::uint64_t{bytes.size()}, std::uint64_t{0}})
        for (std::size_t at = 0; at + 8 <= bytes.size(); ++at) {
            Bytes hostile = bytes;
            for (std::size_t i = 0; i < 8; ++i) hostile[at + i] = static_cast<std::uint8_t>(number >> (8 * i));
            const auto decoded = decode(hostile);
            // What is accepted must be exactly what it says: one encoding for one value.
            if (decoded) {
                EXPECT_EQ(encode_again(*decoded), hostile);
            }
        }
}

TEST(CodecTest, HostileLengthsAndCountsAreRejectedOrTakenExactly) {
    const auto again = [](const auto& value) { return encode(value); };
    expect_survives_numbers(encode(full_record()), decode_record, again);
    expect_survives_numbers(encode(full_ticket()), decode_ticket, again);
    expect_survives_numbers(encode(full_event()), decode_event, again);
}

TEST(CodecTest, FlippedBytesAreRejectedOrTakenExactly) {
    std::mt19937_64 random(seed_of("CodecTest.FlippedBytes"));
    for (const Record& record : records()) {
        const Bytes bytes = encode(record);
        for (int round = 0; round < scaled(4000); ++round) {
            Bytes damaged = bytes;
            for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
                damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
            const auto decoded = decode_record(damaged);
            if (!decoded) continue;
            EXPECT_EQ(encode(*decoded), damaged);
            // Whatever is accepted, the protocol must be able to go on with.
            const Decision decision = step({.record = *decoded}, queued(by_alice(record.name)), day);
            EXPECT_TRUE(decision.reply || !decision.reply.error().message.empty());
        }
    }
}

TEST(CodecTest, NoiseIsRejected) {
    std::mt19937_64 random(seed_of("CodecTest.Noise"));
    for (int round = 0; round < scaled(5000); ++round) {
        Bytes noise(random() % 400);
        for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
        EXPECT_FALSE(decode_record(noise));
        EXPECT_FALSE(decode_event(noise));
    }
}

TEST(CodecTest, ANameThatNoLockCanHaveIsRejected) {
    Bytes bytes = encode(blank(lock("x")));
    bytes[8] = '\n';
    EXPECT_FALSE(decode_record(bytes));
    bytes[8] = 0xff;
    EXPECT_FALSE(decode_record(bytes));
}

TEST(CodecTest, ATokenWithoutASuccessorIsRejected) {
    Record record = full_record();
    record.token = {FencingToken::limit - 2};
    EXPECT_TRUE(decode_record(encode(record)));
    record.token = {FencingToken::limit - 1};
    EXPECT_FALSE(decode_record(encode(record)));
    record.token = {~std::uint64_t{0}};
    EXPECT_FALSE(decode_record(encode(record)));
}

TEST(CodecTest, TimesThatAreNoDatesAreRejected) {
    for (const auto time :
         {Instant::max(), Instant::min(), Instant{std::chrono::milliseconds{std::int64_t{1} << 53}}}) {
        Record record = full_record();
        record.held->lease.expires_at = time;
        EXPECT_FALSE(decode_record(encode(record)));
        Ticket ticket = full_ticket();
        ticket.expires_at = time;
        EXPECT_FALSE(decode_ticket(encode(ticket)));
    }
}

TEST(CodecTest, AMapHasOneOrderOnly) {
    AuditEvent event = full_event();
    event.details = {{"a", "1"}, {"b", "2"}};
    Bytes bytes = encode(event);
    const Bytes a{'a', 1, 0, 0, 0, 0, 0, 0, 0, '1'};
    const auto first = std::ranges::search(bytes, a);
    ASSERT_FALSE(first.empty());
    const auto at = static_cast<std::size_t>(first.begin() - bytes.begin());
    constexpr std::size_t entry = 18;
    std::swap(bytes[at], bytes[at + entry]);
    std::swap(bytes[at + 9], bytes[at + 9 + entry]);
    EXPECT_FALSE(decode_event(bytes)) << "descending keys";
    bytes[at] = bytes[at + entry] = 'a';
    EXPECT_FALSE(decode_event(bytes)) << "the same key twice";
}

TEST(CodecTest, TheHashOfAnEventCoversAllOfItButItself) {
    AuditEvent event = full_event();
    event.hash = {};
    EXPECT_EQ(hash_of(event), full_event().hash);
}

}  // namespace
}  // namespace holdfast::tests
