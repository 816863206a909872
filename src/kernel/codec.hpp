#pragma once

#include "kernel/record.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// One exact byte form of every stored value: what the file store writes, what checksums and the audit
/// chain cover. Little-endian, lengths before contents, no padding, one encoding for one value.
namespace holdfast::kernel {

using Bytes = std::vector<std::uint8_t>;

[[nodiscard]] Bytes encode(const Record& record);
[[nodiscard]] Bytes encode(const Ticket& ticket);
[[nodiscard]] Bytes encode(const AuditEvent& event);

/// Empty if the bytes are not exactly one valid value. Safe on any input.
[[nodiscard]] std::optional<Record> decode_record(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<Ticket> decode_ticket(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<AuditEvent> decode_event(std::span<const std::uint8_t> bytes);

/// The hash that an event must carry: of all its fields but `hash` itself.
[[nodiscard]] Digest hash_of(const AuditEvent& event);

}  // namespace holdfast::kernel
