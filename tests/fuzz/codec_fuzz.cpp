// The exact byte form of records, tickets and events. What decodes must encode to the same bytes again.
#include "fuzz/target.hpp"
#include "kernel/codec.hpp"

#include <algorithm>

namespace holdfast::fuzz {
namespace {

template <class T>
void expect_one_form(const std::optional<T>& decoded, Bytes bytes) {
    if (decoded) require(std::ranges::equal(kernel::encode(*decoded), bytes), "two encodings of one value");
}

void run(Bytes bytes) {
    switch (take_choice(bytes) % 3) {
        case 0: return expect_one_form(kernel::decode_record(bytes), bytes);
        case 1: return expect_one_form(kernel::decode_ticket(bytes), bytes);
        default: return expect_one_form(kernel::decode_event(bytes), bytes);
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
