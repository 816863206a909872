// Documents from outside: requests of clients, and the locks, events and errors of a daemon. Whatever the bytes are,
// they are understood or refused with words that a terminal can show; and what was understood is written in a way that
// is understood again.
#include "fuzz/target.hpp"
#include "json/documents.hpp"
#include "json/lease_list.hpp"
#include "json/request.hpp"
#include "values/text.hpp"

namespace holdfast::fuzz {
namespace {

template <class T>
bool is_good(const Result<T>& result) {
    if (!result) {
        const Errc code = result.error().code;
        require(code == Errc::usage || code == Errc::name_invalid, "refused with another code than usage");
        require(!has_control(result.error().message), "the message could move a terminal");
    }
    return result.has_value();
}

void again(const json::Object& written, auto read) {
    const auto node = json::parse(written.done().written(), {.bytes = std::size_t{64} << 20, .depth = 16});
    require(node && read(*node), "what was understood is not understood again");
}

void run(Bytes bytes) {
    const Ttl usual = *Ttl::of(Ttl::shortest);
    const std::string_view text = text_of(bytes);
    static_cast<void>(json::parse_lease_list(text));
    const auto node = json::parse(text);
    if (!is_good(node)) return;
    if (const auto sent = json::read_request(*node, "", usual); is_good(sent))
        again(json::request(sent->request),
              [&](const auto& n) { return json::read_request(n, "", usual).has_value(); });
    is_good(json::read_request(*node, "acquire", usual));
    is_good(json::read_batch(*node, usual, 100));
    if (const auto event = json::read_event(*node); is_good(event))
        again(json::event(*event), [&](const auto& n) {
            const auto same = json::read_event(n);
            return same && *same == *event;
        });
    if (const auto lock = json::read_lock(*node); is_good(lock))
        again(json::lock(lock->status, {.store_id = lock->store_id, .grade = lock->grade}), [&](const auto& n) {
            const auto same = json::read_lock(n);
            return same && same->status == lock->status;
        });
    is_good(json::read_grant(*node));
    is_good(json::read_replies(*node));
    is_good(json::read_locks(*node));
    is_good(json::read_event_page(*node));
    is_good(json::read_store(*node));
    is_good(json::read_error(*node));
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
