#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Detects a torn write or a flipped bit: every stored value is between a mark with its length and a checksum over all
/// of it.
namespace holdfast::base {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// What a frame contains; its four bytes on disk. The last of them is the version.
enum class FrameKind : std::uint32_t {
    record = 0x31524648,  ///< `HFR1`
    event = 0x31454648,   ///< `HFE1`
    ticket = 0x31544648,  ///< `HFT1`
};

/// Kind, length, payload, CRC-32C of everything before it.
[[nodiscard]] Bytes framed(FrameKind kind, ByteView payload);

/// The payload of the frame at the start of `bytes`, which then begins after it. Empty, and `bytes` unchanged, unless
/// there is a complete frame of that kind with the right checksum.
[[nodiscard]] std::optional<ByteView> take_frame(FrameKind kind, ByteView& bytes);

/// The payload if `bytes` is exactly one frame of that kind.
[[nodiscard]] std::optional<ByteView> only_frame(FrameKind kind, ByteView bytes);

/// Puts numbers and byte strings one after the other.
class PayloadWriter {
public:
    void number(std::uint64_t value);
    void bytes(ByteView bytes);  ///< With its length before it.
    void text(std::string_view text);
    [[nodiscard]] Bytes take() { return std::move(bytes_); }

private:
    Bytes bytes_;
};

/// Reads what PayloadWriter wrote. After the first error everything reads as empty, and `complete()` is false.
class PayloadReader {
public:
    explicit PayloadReader(ByteView bytes) : rest_(bytes) {}
    [[nodiscard]] std::uint64_t number();
    [[nodiscard]] ByteView bytes();
    [[nodiscard]] std::string text();
    [[nodiscard]] bool complete() const { return !failed_ && rest_.empty(); }

private:
    [[nodiscard]] ByteView take(std::uint64_t count);
    ByteView rest_;
    bool failed_ = false;
};

}  // namespace holdfast::base
