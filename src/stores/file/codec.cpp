#include "stores/file/codec.hpp"

#include "kernel/codec.hpp"

namespace holdfast::stores::file {
namespace {

/// Whether the tail leads without gaps to the record's own number and hash.
bool leads_to_record(const SavedLock& saved) {
    if (saved.tail.empty()) return false;
    const AuditEvent& first = saved.tail.front();
    const std::uint64_t oldest = saved.record.pruned_seq + 1;
    if (first.seq < oldest || (first.seq == oldest) != (saved.audit_bytes == 0)) return false;
    std::uint64_t expected = first.seq;
    for (const AuditEvent& event : saved.tail)
        if (event.seq != expected++ || event.name != saved.record.name) return false;
    return saved.tail.back().seq == saved.record.seq && saved.tail.back().hash == saved.record.chain;
}

}  // namespace

Bytes to_file(const SavedLock& saved) {
    base::PayloadWriter out;
    out.text(saved.saved_under.boot_id);
    out.number(static_cast<std::uint64_t>(saved.saved_under.offset.count()));
    out.number(saved.audit_bytes);
    out.bytes(kernel::encode(saved.record));
    out.number(saved.tail.size());
    for (const AuditEvent& event : saved.tail) out.bytes(kernel::encode(event));
    return base::framed(base::FrameKind::record, out.take());
}

std::optional<SavedLock> saved_lock_in(ByteView file) {
    const auto payload = base::only_frame(base::FrameKind::record, file);
    if (!payload) return std::nullopt;
    base::PayloadReader in(*payload);
    kernel::ClockMark mark;
    mark.boot_id = in.text();
    mark.offset = std::chrono::milliseconds{static_cast<std::int64_t>(in.number())};
    const std::uint64_t audit_bytes = in.number();
    auto record = kernel::decode_record(in.bytes());
    if (!record) return std::nullopt;
    SavedLock saved{std::move(*record), std::move(mark), audit_bytes, {}};
    for (std::uint64_t count = in.number(); count > 0; --count) {
        auto event = kernel::decode_event(in.bytes());
        if (!event) return std::nullopt;
        saved.tail.push_back(std::move(*event));
    }
    if (!in.complete() || !leads_to_record(saved)) return std::nullopt;
    return saved;
}

Bytes to_audit(std::span<const AuditEvent> events) {
    Bytes bytes;
    for (const AuditEvent& event : events) {
        const Bytes frame = base::framed(base::FrameKind::event, kernel::encode(event));
        bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    return bytes;
}

std::optional<std::vector<AuditEvent>> events_in(ByteView audit, const LockName& name, std::uint64_t first) {
    auto readable = readable_events_in(audit, name, first);
    if (readable.size != audit.size()) return std::nullopt;
    return std::move(readable.events);
}

ReadableEvents readable_events_in(ByteView audit, const LockName& name, std::uint64_t first) {
    ReadableEvents found;
    for (ByteView rest = audit; !rest.empty(); found.size = audit.size() - rest.size()) {
        const auto payload = base::take_frame(base::FrameKind::event, rest);
        auto event = payload ? kernel::decode_event(*payload) : std::nullopt;
        if (!event || event->seq != first + found.events.size() || event->name != name) break;
        found.events.push_back(std::move(*event));
    }
    return found;
}

}  // namespace holdfast::stores::file
