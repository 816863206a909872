#include "server/guarded.hpp"

#include "access/token_file.hpp"

#include <gtest/gtest.h>

namespace holdfast::server_test {
namespace {

cli_test::Args with_file(const std::string& path, const cli_test::Args& more) {
    // It is there before the daemon starts, and lets nobody in.
    const auto first = access::create_token(path, {.user = "first", .grants = {{access::Role::viewer, "nothing"}}},
                                            host_clock(), Deadline::never());
    EXPECT_TRUE(first) << first.error().message;
    cli_test::Args args{"--token-file", path};
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

}  // namespace

Guarded::Guarded(const cli_test::Args& more)
    : path((folder.path() / "tokens").string()), daemon(with_file(path, more)) {}

std::string Guarded::token(std::string_view user, const std::vector<std::string>& grants, bool by_proxy) {
    access::NewToken wanted{.user = std::string(user), .by_proxy = by_proxy};
    for (const std::string& text : grants) wanted.grants.push_back(*access::Grant::parse(text));
    const auto created = access::create_token(path, wanted, host_clock(), Deadline::never());
    EXPECT_TRUE(created) << created.error().message;
    return created ? created->token : "";
}

void Guarded::revoke(const std::string& token) {
    EXPECT_TRUE(access::revoke_token(path, access::ApiToken::parse(token)->id, host_clock(), Deadline::never()));
}

Answer Guarded::call(const std::string& token, std::string_view method, std::string_view target, std::string_view body,
                     Client::Headers headers) const {
    if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
    return daemon.client().call(method, target, body, headers);
}

}  // namespace holdfast::server_test
