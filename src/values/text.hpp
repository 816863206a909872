#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

/// Well-formed UTF-8, without overlong forms and surrogates.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Whether any byte is a control character (C0, DEL, or C1 in UTF-8).
[[nodiscard]] bool has_control(std::string_view text);

/// `500ms`, `30s`, `5m`, `1h30m`, `2d`: units from large to small, each once. Refused with `usage`.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// For people: `850 ms`, `24 s`, `5 min 30 s`, `2 h`, `3 d 4 h`.
[[nodiscard]] std::string to_words(std::chrono::milliseconds time);

/// For people: `14:02:11 UTC`, with the date when `now` is on another day.
[[nodiscard]] std::string clock_time(Instant at, Instant now);

/// What `to_rfc3339` writes, `2026-01-31T12:00:00.000Z`, and no other form. Absent for anything else.
[[nodiscard]] std::optional<Instant> parse_time(std::string_view text);

/// At most `max_bytes` of UTF-8: the end of a longer text after `…`, cut between two characters. The end of a path says
/// more than its beginning.
[[nodiscard]] std::string end_of(std::string_view text, std::size_t max_bytes);

/// Makes text safe to print on a terminal: control characters become `\n`, `\x1b`, invisible ones `\u202e`.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace holdfast
