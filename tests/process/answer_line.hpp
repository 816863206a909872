#pragma once

#include "holdfast/request.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// How a child process tells its parent, in one line, what the store answered.
namespace holdfast::tests {

/// Up to which event the child prunes, when told to: some of many, and all but the newest of few.
inline constexpr std::uint64_t contender_prunes = 10;

struct AnswerLine {
    bool granted = false;
    std::uint64_t token = 0;  ///< Of the lock.
    std::uint64_t seq = 0;    ///< Of the lock's newest event, as the answer knew it.
    std::string lock_id{};    ///< Of the lease that is there; empty if none is.
    std::string code{};       ///< E_…, when refused.
    std::string message{};    ///< The words of the refusal.
};

[[nodiscard]] std::string to_line(const Reply& reply);

/// Empty unless `line` is a line of `to_line`, whole but perhaps for the message.
[[nodiscard]] std::optional<AnswerLine> parse_line(const std::string& line);

}  // namespace holdfast::tests
