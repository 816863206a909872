#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

/// What a fuzz target defines: called with any bytes, it must come back. libFuzzer's name, so that the same
/// file serves its search (`make fuzz`) and the short replay in every test run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace holdfast::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Ends the process, which is how both drivers hear of a failure.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The first byte, which chooses what the rest is given to. 0 if there is none.
inline std::uint8_t take_choice(Bytes& bytes) {
    if (bytes.empty()) return 0;
    const std::uint8_t choice = bytes.front();
    bytes = bytes.subspan(1);
    return choice;
}

}  // namespace holdfast::fuzz
