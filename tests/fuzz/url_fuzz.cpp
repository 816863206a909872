// Addresses of stores. What was understood can be written with every byte escaped, and means the same.
#include "base/url.hpp"
#include "fuzz/target.hpp"

#include <fmt/format.h>

namespace holdfast::fuzz {
namespace {

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) result += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    return result;
}

void expect_same_when_escaped(const base::Url& url) {
    std::string text = url.scheme + (url.has_authority ? "://" : ":") + escaped(url.place);
    char separator = '?';
    for (const auto& [name, value] : url.parameters) {
        text += separator + name + "=" + escaped(value);
        separator = '&';
    }
    const auto again = base::Url::parse(text);
    require(again.has_value(), "an escaped URL is refused");
    require(again->scheme == url.scheme && again->place == url.place && again->parameters == url.parameters &&
                again->has_authority == url.has_authority,
            "an escaped URL means something else");
}

void run(Bytes bytes) {
    const auto url = base::Url::parse(text_of(bytes));
    if (!url) return require(url.error().code == Errc::usage, "a URL is refused with another code than usage");
    expect_same_when_escaped(*url);
    require(!url->has_authority || url->redacted().find('@') == std::string::npos, "who logs in is not left out");
    const auto server = url->server();
    if (!server) return require(server.error().code == Errc::usage, "a server is refused with another code");
    require(!server->endpoints.empty(), "a server without an endpoint");
    for (const auto& endpoint : server->endpoints) require(!endpoint.host.empty(), "an endpoint without a host");
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
