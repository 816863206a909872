#pragma once

#include "holdfast/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// Parses JSON into a tree of values. `Fields` converts the values.
namespace holdfast::json {

struct Member;

/// One value of a document that was read.
struct Node {
    /// A fraction, or a whole number beyond 64 bits. No field of Holdfast has such a value.
    struct OtherNumber {};
    using Array = std::vector<Node>;
    using Object = std::vector<Member>;  ///< In the order of the text. No key is there twice.

    // Without an initializer, which would need `Member` to be complete here.
    std::variant<std::monostate, bool, std::int64_t, OtherNumber, std::string, Array, Object> value;

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value); }
    /// Null if the value is of another type.
    [[nodiscard]] const Array* array() const { return std::get_if<Array>(&value); }
    [[nodiscard]] const Object* object() const { return std::get_if<Object>(&value); }
};

struct Member {
    std::string key{};
    Node node{};
};

/// The limits of a document. Checked while it is parsed, before a tree is complete.
struct ParseLimits {
    std::size_t bytes = std::size_t{1} << 20;
    std::size_t depth = 16;  ///< The depth of objects and arrays.
};

/// Reads exactly one document. Refused with `usage`: what is not JSON, is beyond the limits, is not UTF-8, or has a key
/// twice, since two readers could then understand two different things. The message repeats no value, which may be a
/// secret.
[[nodiscard]] Result<Node> parse(std::string_view text, const ParseLimits& limits = {});

}  // namespace holdfast::json
