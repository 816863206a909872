#include "guards/sql/postgres_text.hpp"

#include <fmt/format.h>

namespace holdfast::guards::fence {

std::string literal(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
    return out + "'";
}

std::string dollar_quoted(std::string_view body) {
    std::string quote = "$holdfast$";
    for (int i = 1; body.find(quote) != std::string_view::npos; ++i) quote = fmt::format("$holdfast{}$", i);
    return fmt::format("{0}\n{1}\n{0}", quote, body);
}

}  // namespace holdfast::guards::fence
