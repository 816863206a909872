// What shows a daemon who calls, and what says who may do what: headers, networks, grants, the token file. Nobody is
// let in by anything but the token.
#include "access/authenticator.hpp"
#include "fuzz/target.hpp"
#include "support/temp_folder.hpp"

#include <string>

namespace holdfast::fuzz {
namespace {

using namespace holdfast::access;

/// An authenticator with one token, which no input has.
struct Door {
    tests::TempFolder folder{};
    const std::string path = (folder.path() / "tokens").string();
    const bool is_made =
        create_token(path, {.user = "alice", .grants = {{Role::admin, ""}}}, host_clock(), Deadline::never())
            .has_value();
    std::unique_ptr<Authenticator> authenticator = std::move(*Authenticator::create(
        {.token_file = path, .trust_header = "X-User", .trust_from = {*Network::parse("10.0.0.0/8")}}, host_clock()));
};

void expect_nobody(const Shown& shown) {
    static Door door;
    require(door.is_made, "the token file cannot be made");
    const auto who = door.authenticator->identify(shown);
    require(!who, "somebody was let in");
    require(who.error().code == Errc::denied, "nobody is let in with another code");
}

void expect_same_file(std::string_view text) {
    const auto entries = parse_tokens(text);
    if (!entries) return;
    const auto again = parse_tokens(text_of_tokens(*entries));
    require(again && *again == *entries, "a token file means something else after it was written");
}

void expect_same_grant(std::string_view text) {
    const auto grant = Grant::parse(text);
    if (!grant) return require(grant.error().code == Errc::usage, "a grant is refused with another code");
    require(grant->text() == text, "a grant is written otherwise");
    require(grant->role != Role::nobody, "a grant of nothing");
    // What it covers begins with its area.
    const auto name = LockName::parse("team/a");
    require(!grant->covers(*name) || name->text().starts_with(grant->area), "a grant covers what is not below it");
}

void run(Bytes bytes) {
    const std::uint8_t choice = take_choice(bytes);
    const std::string text(text_of(bytes));
    switch (choice % 6) {
        case 0: return expect_nobody({.authorization = {text}});
        case 1: return expect_nobody({.cookie = {text}});
        case 2: return expect_nobody({.address = text, .trusted = {"alice"}});
        case 3: return expect_same_file(text);
        case 4: return expect_same_grant(text);
        default: {
            const auto network = Network::parse(text);
            require(!network || !network->contains("not an address"), "a network contains what is no address");
        }
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
