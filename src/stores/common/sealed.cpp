#include "stores/common/sealed.hpp"

#include "kernel/codec.hpp"
#include "kernel/rebase.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores {
namespace {

using base::Bytes;
using base::ByteView;
using base::FrameKind;
using std::chrono::milliseconds;

template <class T>
Bytes stamped(FrameKind kind, const T& value, Instant written_at) {
    base::PayloadWriter out;
    out.number(static_cast<std::uint64_t>(written_at.time_since_epoch().count()));
    out.bytes(kernel::encode(value));
    return base::framed(kind, out.take());
}

template <class T, class Decode>
std::optional<Unsealed<T>> read(FrameKind kind, ByteView bytes, Decode decode, Instant now, milliseconds tolerance) {
    const auto payload = base::only_frame(kind, bytes);
    if (!payload) return std::nullopt;
    base::PayloadReader in(*payload);
    const std::uint64_t stamp = in.number();
    // No clock shows more. This keeps the sums below from overflowing, whatever was altered.
    if (stamp >= FencingToken::limit) return std::nullopt;
    const milliseconds written{static_cast<std::int64_t>(stamp)};
    auto value = decode(in.bytes());
    if (!in.complete() || !value) return std::nullopt;
    const bool moved = written - tolerance > now.time_since_epoch();
    if (!moved) return Unsealed<T>{std::move(*value), false};
    return Unsealed<T>{kernel::rebase(std::move(*value), {"", written}, {"", now.time_since_epoch()}, now), true};
}

}  // namespace

Bytes sealed(const kernel::Record& record, Instant written_at) {
    return stamped(FrameKind::record, record, written_at);
}

Bytes sealed(const kernel::Ticket& ticket, Instant written_at) {
    return stamped(FrameKind::ticket, ticket, written_at);
}

Bytes sealed(const AuditEvent& event) { return base::framed(FrameKind::event, kernel::encode(event)); }

Result<Unsealed<kernel::Record>> unsealed_record(ByteView bytes, const LockName& name, Instant now,
                                                 milliseconds tolerance) {
    auto read_one = read<kernel::Record>(FrameKind::record, bytes, kernel::decode_record, now, tolerance);
    if (!read_one || read_one->value.name != name) return std::unexpected(unreadable(name, "the record"));
    return std::move(*read_one);
}

Result<Unsealed<kernel::Ticket>> unsealed_ticket(ByteView bytes, const LockName& name, Instant now,
                                                 milliseconds tolerance) {
    auto read_one = read<kernel::Ticket>(FrameKind::ticket, bytes, kernel::decode_ticket, now, tolerance);
    if (!read_one) return std::unexpected(unreadable(name, "a place in the queue"));
    return std::move(*read_one);
}

Result<AuditEvent> unsealed_event(ByteView bytes) {
    const auto payload = base::only_frame(FrameKind::event, bytes);
    auto event = payload ? kernel::decode_event(*payload) : std::nullopt;
    if (!event) return fail(Errc::record_corrupt, "an event of the audit log cannot be read");
    return std::move(*event);
}

Error unreadable(const LockName& name, std::string_view what) {
    return {Errc::record_corrupt, fmt::format("{} of {} cannot be read; the lock stays blocked until it is repaired",
                                              what, printable(name.text()))};
}

}  // namespace holdfast::stores
