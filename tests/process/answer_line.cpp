#include "process/answer_line.hpp"

#include <fmt/format.h>

#include <sstream>

namespace holdfast::tests {
namespace {

std::string line_of(std::string_view code, const LockStatus* lock, std::string_view message) {
    const bool leased = lock != nullptr && lock->lease;
    return fmt::format("{} {} {} {} .{}\n", code, lock == nullptr ? 0 : lock->token.value,
                       lock == nullptr ? 0 : lock->seq, leased ? lock->lease->lock_id.text() : "-", message);
}

}  // namespace

std::string to_line(const Reply& reply) {
    if (reply) return line_of("granted", &reply->lock, "");
    return line_of(row_of(reply.error().code).name, reply.error().holder.get(), reply.error().message);
}

std::optional<AnswerLine> parse_line(const std::string& line) {
    std::istringstream words(line);
    AnswerLine answer;
    char dot = 0;
    // The dot is there because a process can be killed in the middle of a word.
    if (!(words >> answer.code >> answer.token >> answer.seq >> answer.lock_id >> dot) || dot != '.')
        return std::nullopt;
    std::getline(words, answer.message);
    answer.granted = answer.code == "granted";
    if (answer.granted) answer.code.clear();
    if (answer.lock_id == "-") answer.lock_id.clear();
    return answer;
}

}  // namespace holdfast::tests
