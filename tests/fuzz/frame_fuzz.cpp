// Frames and the numbers and texts inside them. A frame that is accepted is exactly what `framed` writes.
#include "base/frame.hpp"
#include "fuzz/target.hpp"

#include <algorithm>
#include <array>

namespace holdfast::fuzz {
namespace {

constexpr std::array kinds{base::FrameKind::record, base::FrameKind::event, base::FrameKind::ticket};

void read_payload(Bytes payload) {
    base::PayloadReader in(payload);
    const std::uint64_t number = in.number();
    const std::string text = in.text();
    const base::ByteView bytes = in.bytes();
    if (!in.complete()) return;
    base::PayloadWriter out;
    out.number(number);
    out.text(text);
    out.bytes(bytes);
    require(std::ranges::equal(out.take(), payload), "two forms of one payload");
}

void run(Bytes bytes) {
    const base::FrameKind kind = kinds[take_choice(bytes) % kinds.size()];
    Bytes rest = bytes;
    while (const auto payload = base::take_frame(kind, rest)) {
        const std::size_t consumed = bytes.size() - rest.size();
        require(std::ranges::equal(base::framed(kind, *payload), bytes.first(consumed)), "two frames of one payload");
        read_payload(*payload);
        bytes = rest;
    }
    require(rest.size() == bytes.size(), "bytes were taken although there was no frame");
    // A search does not guess checksums, so what lies behind them is also reached directly.
    read_payload(bytes);
    const auto wrapped = base::framed(kind, bytes);
    require(base::only_frame(kind, wrapped).has_value(), "a frame of ours is not accepted");
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
