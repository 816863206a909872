#include "server/http.hpp"

#include "json/error.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <array>

namespace holdfast::server {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 25> reasons{{
    {200, "OK"},
    {204, "No Content"},
    {302, "Found"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
}};

std::optional<std::string_view> find(const HttpRequest::Fields& fields, std::string_view name) {
    const auto found = std::ranges::find(fields, name, &std::pair<std::string, std::string>::first);
    if (found == fields.end()) return std::nullopt;
    return found->second;
}

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Absent where it is not well-formed.
std::optional<std::string> decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i] == '+' ? ' ' : text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = digit_of(text[i + 1]);
        const int low = digit_of(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    if (!is_utf8(out)) return std::nullopt;
    return out;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const { return find(headers, name); }
std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const { return find(query, name); }

Result<void> split_target(std::string_view target, HttpRequest& into) {
    const auto mark = target.find('?');
    into.path = target.substr(0, mark);
    if (mark == std::string_view::npos) return {};
    for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
        const std::string_view pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        auto key = decoded(pair.substr(0, equals));
        auto value = decoded(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
        if (!key || !value) return fail(Errc::usage, "the query is not percent-encoded UTF-8");
        // Two readers could take two different ones.
        if (find(into.query, *key)) return fail(Errc::usage, "a parameter of the query is there twice");
        into.query.emplace_back(std::move(*key), std::move(*value));
    }
    return {};
}

std::string_view reason_of(int status) {
    const auto* const found = std::ranges::find(reasons, status, &std::pair<int, std::string_view>::first);
    return found == reasons.end() ? "Unknown" : found->second;
}

HttpReply reply_with(const Error& error) {
    const int status = row_of(error.code).http_status;
    return reply_with(error, status == 0 ? 500 : status);
}

HttpReply reply_with(const Error& error, int status) {
    HttpReply reply{.status = status};
    reply.body = json::error(error, error.hint, std::nullopt).done().written();
    if (status == 503) reply.headers.emplace_back("Retry-After", "1");
    return reply;
}

}  // namespace holdfast::server
