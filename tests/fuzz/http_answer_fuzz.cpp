// What comes back from the address of a daemon: any status with any bytes. It is understood, or refused with words that
// a terminal can show; and a reply is taken for that to the request that was sent and to no other.
#include "fuzz/target.hpp"
#include "holdfast/store.hpp"
#include "stores/http/codec.hpp"
#include "stores/http/server.hpp"
#include "values/text.hpp"

#include <array>

namespace holdfast::fuzz {
namespace {

using namespace stores::http;

void require_showable(const Error& error) {
    require(error.code == Errc::usage || error.code == Errc::name_invalid || !has_control(error.message),
            "the message could move a terminal");
}

void run(Bytes bytes) {
    static const Address address{
        .base = "https://daemon.example:7420", .shown = "https://daemon.example", .token = "", .ca_file = ""};
    static const LockName name = LockName::parse("a").value();
    static const Credentials as =
        Credentials::parse("9f304132-540a-455b-abc3-95cad6089006.00000000000000000000000000000000").value();
    constexpr std::array<long, 12> statuses{200, 200, 200, 200, 204, 302, 400, 401, 404, 423, 502, 504};
    const std::uint8_t choice = take_choice(bytes);
    const long status = statuses[choice % statuses.size()];
    const Statement said = statement_of(address, {.status = status, .body = std::string(text_of(bytes))});
    if (!said.document) return;
    require(status == 200, "an answer without success was understood");
    if (const auto fired = read_fired(*said.document, 3))
        for (const FiredWatch& one : *fired) require(one.index < 3, "a watch that nobody has");
    else
        require_showable(fired.error());
    const std::array<Request, 1> acquire{Acquire{.name = name, .as = as, .ttl = *Ttl::of(Ttl::shortest)}};
    if (const auto replies = read_replies_to(acquire, *said.document)) {
        require(replies->size() == 1, "not one reply to one request");
        const Reply& reply = replies->front();
        require(!reply || (reply->lock.name == name && reply->lock.lease && reply->lock.lease->lock_id == as.lock_id),
                "the grant of something else");
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
