// Asks one thing of a store and prints the answer: `contender acquire|renew|release|prune URL NAME LEASE TTL_MS`. With
// `exchange:OTHER` it gives OTHER back and takes NAME unless OTHER is held, in one batch, and prints the first answer.
// Small on purpose: what the crash tests see under strace is the store and hardly anything else.
#include "holdfast/open.hpp"
#include "process/answer_line.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using namespace holdfast;

std::optional<Request> request_of(std::string_view what, const LockName& name, const Credentials& as, Ttl ttl) {
    if (what == "renew") return Renew{name, as, ttl};
    if (what == "release") return Release{name, as};
    if (what == "prune") return Prune{name, tests::contender_prunes, "root"};
    if (what != "acquire") return std::nullopt;
    Acquire acquire{.name = name, .as = as, .ttl = ttl};
    acquire.holder = Holder::this_process();
    return acquire;
}

/// Empty if `what` is nothing that is known.
std::vector<Request> requests_of(std::string_view what, const LockName& name, const Credentials& as, Ttl ttl) {
    constexpr std::string_view exchange = "exchange:";
    if (!what.starts_with(exchange)) {
        const auto request = request_of(what, name, as, ttl);
        return request ? std::vector<Request>{*request} : std::vector<Request>{};
    }
    const auto other = LockName::parse(what.substr(exchange.size()));
    if (!other) return {};
    Acquire acquire{.name = name, .as = as, .ttl = ttl};
    acquire.holder = Holder::this_process();
    acquire.unless_held = {*other};
    return {Release{*other, as}, acquire};
}

/// The first answer, or the error of the whole.
Reply ask(std::string_view url, const std::vector<Request>& requests) {
    auto store = open_store(url);
    if (!store) return std::unexpected(store.error());
    const auto replies = (*store)->apply(requests, Deadline::in(host_clock(), std::chrono::seconds{10}));
    if (!replies) return std::unexpected(replies.error());
    return replies->front();
}

int usage(std::string_view why) {
    std::fprintf(stderr, "contender: %.*s\n", static_cast<int>(why.size()), why.data());
    return 64;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) return usage("acquire|renew|release|prune|exchange:OTHER URL NAME LEASE TTL_MS");
    const auto name = LockName::parse(argv[3]);
    const auto as = Credentials::parse(argv[4]);
    const auto ttl = Ttl::of(std::chrono::milliseconds{std::stoll(argv[5])});
    if (!name || !as || !ttl) return usage("bad name, lease or ttl");
    const auto requests = requests_of(argv[1], *name, *as, *ttl);
    if (requests.empty()) return usage("unknown operation");

    const std::string line = tests::to_line(ask(argv[2], requests));
    return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 74;
}
