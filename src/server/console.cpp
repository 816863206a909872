#include "server/console.hpp"

#include "server/handlers.hpp"

#include <algorithm>

namespace holdfast::server {
namespace {

/// Scripts and styles come from the daemon alone, nothing is sent elsewhere, and no other page shows it in a frame.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src "
    "'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

}  // namespace

void handle_console(Services& /*services*/, const ExchangePtr& exchange) {
    const std::string_view path =
        exchange->request.path == "/" ? "/index.html" : std::string_view(exchange->request.path);
    const auto assets = console_assets();
    const auto found = std::ranges::find(assets, path, &Asset::path);
    if (found == assets.end())
        return exchange->reply(reply_with({Errc::usage, "there is nothing at this address"}, 404));
    HttpReply reply{.content_type = std::string(found->content_type), .body = std::string(found->content)};
    reply.headers = {{"Content-Security-Policy", std::string(policy)},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}};
    exchange->reply(std::move(reply));
}

}  // namespace holdfast::server
