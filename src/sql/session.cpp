#include "sql/session.hpp"

#include <fmt/format.h>

namespace holdfast::sql {
namespace {

Errc code_of(ErrorClass kind) {
    switch (kind) {
        case ErrorClass::denied:
        case ErrorClass::read_only: return Errc::denied;
        case ErrorClass::damaged: return Errc::record_corrupt;
        case ErrorClass::duplicate:
        case ErrorClass::constraint:
        case ErrorClass::missing:
        case ErrorClass::other: return Errc::usage;
        case ErrorClass::connection_lost:
        case ErrorClass::conflict:
        case ErrorClass::lock_busy:
        case ErrorClass::cancelled:
        case ErrorClass::out_of_space: break;
    }
    return Errc::store_unavailable;
}

}  // namespace

Error error_of(const StatementError& error, std::string_view doing) {
    const std::string code = error.code.empty() ? "" : fmt::format(" ({})", error.code);
    return {code_of(error.kind), fmt::format("cannot {}: the database says \"{}\"{}", doing, error.message, code)};
}

std::string quoted_name(std::string_view name, SqlDialect dialect) {
    const char quote = dialect == SqlDialect::mysql ? '`' : '"';
    std::string result(1, quote);
    for (const char letter : name) result += letter == quote ? std::string(2, quote) : std::string(1, letter);
    return result + quote;
}

std::expected<std::vector<SqlAnswer>, StatementError> Session::run_all(std::span<const Command> commands,
                                                                       Deadline deadline) {
    std::vector<SqlAnswer> answers;
    for (const Command& command : commands) {
        auto answer = run(command, deadline);
        if (!answer) return std::unexpected(std::move(answer.error()));
        answers.push_back(std::move(*answer));
    }
    return answers;
}

}  // namespace holdfast::sql
