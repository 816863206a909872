// Heads of HTTP requests. What is understood here is understood in the same way by another reader.
#include "fuzz/target.hpp"
#include "server/head.hpp"
#include "values/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <optional>

namespace holdfast::fuzz {
namespace {

namespace http = boost::beast::http;

void expect_the_same(const server::Head& head, std::string_view text) {
    http::request_parser<http::empty_body> other;
    other.header_limit(1 << 20);
    other.body_limit(boost::none);
    boost::system::error_code error;
    other.put(boost::asio::buffer(text.data(), text.size()), error);
    // A stricter reader behind a proxy answers with 400.
    if (error && error != http::error::need_more && error != http::error::unexpected_body) return;
    require(other.is_header_done(), "another reader finds no end of the head");
    require(other.chunked() == head.is_chunked, "another reader differs about chunks");
    const auto length = other.content_length();
    const auto ours = head.request.header("content-length");
    require(length.has_value() == ours.has_value(), "another reader differs about the length");
    if (length) require(head.length == *length, "another reader finds another length");
}

void run(Bytes bytes) {
    const std::string_view text = text_of(bytes);
    const auto head = server::parse_head(text);
    if (!head) {
        require(head.error().code == Errc::usage, "refused with another code than usage");
        require(!has_control(head.error().message), "the message could move a terminal");
        return;
    }
    require(head->request.path.starts_with('/'), "a path does not begin at the root");
    require(!(head->is_chunked && head->request.header("content-length")), "a length beside chunks");
    for (const auto& [name, value] : head->request.query)
        require(is_utf8(name) && is_utf8(value), "a parameter is not UTF-8");
    expect_the_same(*head, text);
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
