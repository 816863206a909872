#include "base/frame.hpp"

#include "base/crc32c.hpp"

namespace holdfast::base {
namespace {

constexpr std::size_t header_size = 12;
constexpr std::size_t checksum_size = 4;

void append(Bytes& bytes, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t number_in(ByteView bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
    return value;
}

}  // namespace

Bytes framed(FrameKind kind, ByteView payload) {
    Bytes frame;
    frame.reserve(header_size + payload.size() + checksum_size);
    append(frame, static_cast<std::uint32_t>(kind), 4);
    append(frame, payload.size(), 8);
    frame.insert(frame.end(), payload.begin(), payload.end());
    append(frame, crc32c(frame), checksum_size);
    return frame;
}

std::optional<ByteView> take_frame(FrameKind kind, ByteView& bytes) {
    if (bytes.size() < header_size + checksum_size) return std::nullopt;
    if (number_in(bytes.first(4)) != static_cast<std::uint32_t>(kind)) return std::nullopt;
    const std::uint64_t length = number_in(bytes.subspan(4, 8));
    if (length > bytes.size() - header_size - checksum_size) return std::nullopt;
    const std::size_t covered = header_size + static_cast<std::size_t>(length);
    if (number_in(bytes.subspan(covered, checksum_size)) != crc32c(bytes.first(covered))) return std::nullopt;
    const ByteView payload = bytes.subspan(header_size, static_cast<std::size_t>(length));
    bytes = bytes.subspan(covered + checksum_size);
    return payload;
}

std::optional<ByteView> only_frame(FrameKind kind, ByteView bytes) {
    const auto payload = take_frame(kind, bytes);
    return bytes.empty() ? payload : std::nullopt;
}

void PayloadWriter::number(std::uint64_t value) { append(bytes_, value, 8); }

void PayloadWriter::bytes(ByteView bytes) {
    number(bytes.size());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PayloadWriter::text(std::string_view text) {
    number(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
}

std::uint64_t PayloadReader::number() { return number_in(take(8)); }

ByteView PayloadReader::bytes() { return take(number()); }

std::string PayloadReader::text() {
    const ByteView text = bytes();
    return {text.begin(), text.end()};
}

ByteView PayloadReader::take(std::uint64_t count) {
    if (failed_ || count > rest_.size()) {
        failed_ = true;
        return {};
    }
    const ByteView taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
}

}  // namespace holdfast::base
