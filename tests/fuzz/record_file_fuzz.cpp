// What stores keep of a lock: the file store's record and audit files, and the values in a server. What is
// accepted is written as the same bytes again, and can be used: its deadlines moved, its lock asked for.
#include "fuzz/target.hpp"
#include "kernel/rebase.hpp"
#include "kernel/step.hpp"
#include "stores/common/sealed.hpp"
#include "stores/file/codec.hpp"

#include <algorithm>

namespace holdfast::fuzz {
namespace {

constexpr Instant now{std::chrono::milliseconds{1'700'000'000'000}};

void use(const kernel::Record& record) {
    const Acquire acquire{
        .name = record.name, .as = {LockId{}, LeaseKey({})}, .ttl = *Ttl::of(std::chrono::seconds{30})};
    const kernel::Decision decision = kernel::step({record, {}, {}}, acquire, now);
    require(!decision.record || decision.record->token > record.token, "a grant did not raise the token");
}

void record_file(base::ByteView file) {
    const auto saved = stores::file::saved_lock_in(file);
    if (!saved) return;
    require(std::ranges::equal(stores::file::to_file(*saved), file), "two files of one record");
    const kernel::ClockMark here{saved->saved_under.boot_id, std::chrono::hours{24}};
    use(kernel::rebase(saved->record, saved->saved_under, here, now));
    use(kernel::rebase(saved->record, saved->saved_under, {"another boot", {}}, now));
}

void audit_file(base::ByteView file) {
    const auto events = stores::file::events_in(file, *LockName::parse("deploy"), 1);
    if (events) require(std::ranges::equal(stores::file::to_audit(*events), file), "two files of one audit log");
}

void value_in_server(base::ByteView bytes) {
    const LockName name = *LockName::parse("deploy");
    if (const auto record = stores::unsealed_record(bytes, name, now)) use(record->value);
    static_cast<void>(stores::unsealed_ticket(bytes, name, now));
    const auto event = stores::unsealed_event(bytes);
    if (event) require(std::ranges::equal(stores::sealed(*event), bytes), "two values of one event");
}

void run(Bytes bytes) {
    // A search does not guess checksums, so half of the choices put one around what they are given.
    const std::uint8_t choice = take_choice(bytes);
    const bool wrap = choice % 2 == 1;
    const auto kind = choice % 3 == 0   ? base::FrameKind::record
                      : choice % 3 == 1 ? base::FrameKind::event
                                        : base::FrameKind::ticket;
    const base::Bytes wrapped = wrap ? base::framed(kind, bytes) : base::Bytes(bytes.begin(), bytes.end());
    record_file(wrapped);
    audit_file(wrapped);
    value_in_server(wrapped);
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
