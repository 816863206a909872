#pragma once

#include "server/http.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::server {

/// The head of a request: its line and its header fields.
struct Head {
    HttpRequest request{};
    bool is_http10 = false;
    bool keeps_alive = true;
    bool is_chunked = false;
    std::uint64_t length = 0;  ///< Of the body, unless it comes in chunks.
    bool expects_continue = false;
};

/// Reads a head, with the empty line at its end. Stricter than the protocol: two programs in a row could understand
/// anything else in two ways, and one of them would take the body of one request for another request. Refused with
/// `usage`: a line that does not end in CR LF, a folded line, a blank before a colon, a control character, two of what
/// there is once (Host, Content-Length, Transfer-Encoding), a length beside a transfer encoding, and any encoding but
/// `chunked`.
[[nodiscard]] Result<Head> parse_head(std::string_view text);

inline constexpr std::size_t most_fields = 100;

}  // namespace holdfast::server
