// Asks one thing of a store and prints the answer: `contender acquire|renew|release|prune URL NAME LEASE TTL_MS`.
// Small on purpose: what the crash tests see under strace is the store and hardly anything else.
#include "holdfast/open.hpp"
#include "process/answer_line.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

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

int usage(std::string_view why) {
    std::fprintf(stderr, "contender: %.*s\n", static_cast<int>(why.size()), why.data());
    return 64;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) return usage("acquire|renew|release|prune URL NAME LEASE TTL_MS");
    const auto name = LockName::parse(argv[3]);
    const auto as = Credentials::parse(argv[4]);
    const auto ttl = Ttl::of(std::chrono::milliseconds{std::stoll(argv[5])});
    if (!name || !as || !ttl) return usage("bad name, lease or ttl");
    const auto request = request_of(argv[1], *name, *as, *ttl);
    if (!request) return usage("unknown operation");

    auto store = open_store(argv[2]);
    const Reply reply = store ? (*store)->apply_one(*request, Deadline::in(host_clock(), std::chrono::seconds{10}))
                              : Reply(std::unexpected(store.error()));
    const std::string line = tests::to_line(reply);
    return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 74;
}
