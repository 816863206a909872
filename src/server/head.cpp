#include "server/head.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace holdfast::server {
namespace {

constexpr std::string_view token_marks = "!#$%&'*+-.^_`|~";

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || token_marks.find(c) != std::string_view::npos;
    });
}

bool is_value(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    });
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::unexpected<Error> bad(const char* why) { return fail(Errc::usage, why); }

/// Takes the first line off. Absent if it does not end in CR LF, or has either of them alone.
std::optional<std::string_view> take_line(std::string_view& text) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos || end == 0 || text[end - 1] != '\r') return std::nullopt;
    const std::string_view line = text.substr(0, end - 1);
    if (line.find('\r') != std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
    return line;
}

Result<void> read_line(std::string_view line, Head& head) {
    const auto first = line.find(' ');
    const auto last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return bad("the first line is no request");
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (!is_token(method) || method.size() > 20) return bad("the method is no word");
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return bad("only HTTP/1.1 and HTTP/1.0 are spoken here");
    const bool is_path =
        target.starts_with('/') && std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
    if (!is_path) return bad("the address is no path");
    head.is_http10 = version == "HTTP/1.0";
    head.keeps_alive = !head.is_http10;
    head.request.method = method;
    return split_target(target, head.request);
}

Result<void> read_field(std::string_view line, Head& head) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return bad("a header field has no name");
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!is_value(value)) return bad("a header field has a control character");
    head.request.headers.emplace_back(lower(line.substr(0, colon)), value);
    return {};
}

/// What decides where the request ends, and what its sender expects.
Result<void> read_framing(Head& head) {
    const HttpRequest& request = head.request;
    for (const std::string_view once : {"host", "content-length", "transfer-encoding", "authorization"})
        if (std::ranges::count(request.headers, once, &std::pair<std::string, std::string>::first) > 1)
            return bad("a header field is there twice that must be there once");
    const auto length = request.header("content-length");
    const auto encoding = request.header("transfer-encoding");
    if (length && encoding) return bad("a request has a length or a transfer encoding, not both");
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (length && (length->empty() || length->size() > 15 || !std::ranges::all_of(*length, is_digit)))
        return bad("Content-Length is no number");
    if (length) std::from_chars(length->data(), length->data() + length->size(), head.length);
    if (encoding && (lower(*encoding) != "chunked" || head.is_http10)) return bad("the transfer encoding is not known");
    head.is_chunked = encoding.has_value();
    if (const auto connection = request.header("connection")) {
        const std::string words = lower(*connection);
        if (words.find("close") != std::string::npos) head.keeps_alive = false;
        if (head.is_http10 && words.find("keep-alive") != std::string::npos) head.keeps_alive = true;
    }
    if (const auto expected = request.header("expect")) {
        if (lower(*expected) != "100-continue") return bad("the expectation is not known");
        head.expects_continue = true;
    }
    return {};
}

}  // namespace

Result<Head> parse_head(std::string_view text) {
    Head head;
    const auto line = take_line(text);
    if (!line) return bad("a line does not end in CR LF");
    if (auto read = read_line(*line, head); !read) return std::unexpected(read.error());
    while (true) {
        const auto field = take_line(text);
        if (!field) return bad("a line does not end in CR LF");
        if (field->empty()) break;
        if (field->front() == ' ' || field->front() == '\t') return bad("a header field is folded");
        if (head.request.headers.size() == most_fields) return bad("there are too many header fields");
        if (auto read = read_field(*field, head); !read) return std::unexpected(read.error());
    }
    if (!text.empty()) return bad("the head has two ends");
    if (auto read = read_framing(head); !read) return std::unexpected(read.error());
    return head;
}

}  // namespace holdfast::server
