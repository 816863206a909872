#pragma once

#include "holdfast/clock.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes JSON. Values can be combined and not read; `parse.hpp` reads.
namespace holdfast::json {

/// One JSON value, already in its written form.
class Value {
public:
    Value() = default;  ///< `null`
    [[nodiscard]] static Value text(std::string_view text);
    [[nodiscard]] static Value number(std::int64_t number);
    [[nodiscard]] static Value number(std::uint64_t number);
    [[nodiscard]] static Value boolean(bool yes);
    [[nodiscard]] static Value array(const std::vector<Value>& items);
    /// `null` if it is empty.
    [[nodiscard]] static Value text_or_null(std::string_view text);
    [[nodiscard]] static Value time(Instant instant);
    [[nodiscard]] static Value duration(std::chrono::milliseconds time);
    [[nodiscard]] static Value texts(const std::vector<std::string>& texts);
    [[nodiscard]] static Value texts(const std::map<std::string, std::string>& texts);

    /// On one line, without a line end.
    [[nodiscard]] const std::string& written() const { return written_; }

private:
    friend class Object;
    explicit Value(std::string written) : written_(std::move(written)) {}
    std::string written_ = "null";
};

/// A JSON object in the making; fields keep their order.
class Object {
public:
    /// Adds a field. A key is set once.
    Object& set(std::string_view key, const Value& value);
    [[nodiscard]] Value done() const;

private:
    std::string written_{};  ///< Without its end.
};

}  // namespace holdfast::json
