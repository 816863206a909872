// Answers and watch events of etcd, or of an attacker in its place; and the fields that they consist of.
#include "fuzz/target.hpp"
#include "stores/etcd/wire/messages.hpp"
#include "stores/etcd/wire/protobuf.hpp"

namespace holdfast::fuzz {
namespace {

using namespace stores::etcd;

/// What was read can be written, and then says the same.
void fields(std::string_view message) {
    Fields read(message);
    while (const auto field = read.next()) {
        std::string written;
        if (field->bytes.empty())
            append_number(written, field->number, field->value);
        else
            append_bytes(written, field->number, field->bytes);
        Fields again(written);
        const auto same = again.next();
        require(same && same->number == field->number && same->value == field->value && same->bytes == field->bytes,
                "a field does not read as it was written");
        require(!again.next() && again.ok(), "more was written than one field");
    }
}

void transaction(std::string_view message) {
    const auto answer = read_txn(message);
    if (answer) return;
    require(!answer.error().message.empty(), "an answer that is refused without a word");
}

void run(Bytes bytes) {
    const std::uint8_t choice = take_choice(bytes);
    const std::string_view text = text_of(bytes);
    switch (choice % 7) {
        case 0: return transaction(text);
        case 1: return static_cast<void>(read_news(text));
        case 2: return fields(text);
        case 3: return static_cast<void>(read_token(text));
        case 4: return static_cast<void>(read_status(text));
        case 5: return static_cast<void>(count_members(text));
        default: return static_cast<void>(read_alarms(text));
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
