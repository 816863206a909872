// What etcd's JSON gateway, or whoever stands in its place, answers and says on a watch; and the base64 in it.
#include "fuzz/target.hpp"
#include "stores/etcd/base64.hpp"
#include "stores/etcd/messages.hpp"

namespace holdfast::fuzz {
namespace {

using namespace stores::etcd;

void base64(std::string_view text) {
    const auto bytes = from_base64(text);
    if (!bytes) return;
    std::string written;
    append_base64(written, *bytes);
    require(from_base64(written) == bytes, "base64 does not read what it wrote");
}

void transaction(std::string_view body) {
    const auto answer = read_txn(body);
    if (answer) return;
    require(!answer.error().message.empty(), "an answer that is refused without a word");
}

void run(Bytes bytes) {
    const std::uint8_t choice = take_choice(bytes);
    const std::string_view text = text_of(bytes);
    switch (choice % 8) {
        case 0: return transaction(text);
        case 1: return static_cast<void>(read_news(text));
        case 2: return base64(text);
        case 3: return static_cast<void>(read_refusal(text));
        case 4: return static_cast<void>(read_token(text));
        case 5: return static_cast<void>(read_status(text));
        case 6: return static_cast<void>(count_members(text));
        default: return static_cast<void>(read_alarms(text));
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
