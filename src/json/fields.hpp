#pragma once

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "json/parse.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::json {

/// Whole numbers in documents are below this: every reader of JSON has them exactly.
inline constexpr std::int64_t number_limit = std::int64_t{1} << 53;

/// Reads the fields of one object. The first error is kept, and values read after it are meaningless: read everything,
/// then check `error` before using any value.
///
/// A field whose function ends in `_if` may be missing or null. Errors name the field: `override.ttl_ms is missing`.
class Fields {
public:
    /// `where` is the path of the object in its document; empty for the document itself.
    explicit Fields(const Node& node, std::string where = "");

    [[nodiscard]] std::string text(std::string_view key);
    [[nodiscard]] std::string text_or_empty(std::string_view key);
    [[nodiscard]] std::uint64_t number(std::string_view key);
    [[nodiscard]] std::optional<std::uint64_t> number_if(std::string_view key);
    [[nodiscard]] std::optional<std::chrono::milliseconds> duration_if(std::string_view key);
    [[nodiscard]] std::chrono::milliseconds duration(std::string_view key);
    [[nodiscard]] std::optional<Ttl> ttl_if(std::string_view key);
    [[nodiscard]] FencingToken token(std::string_view key);
    [[nodiscard]] bool is_true(std::string_view key);  ///< False if the field is missing or null.
    [[nodiscard]] Instant time(std::string_view key);
    [[nodiscard]] std::optional<Instant> time_if(std::string_view key);
    [[nodiscard]] Digest digest(std::string_view key);
    [[nodiscard]] std::map<std::string, std::string> texts(std::string_view key);  ///< Empty if missing or null.
    [[nodiscard]] std::vector<LockName> names(std::string_view key);               ///< Empty if missing or null.
    /// Null if missing or null.
    [[nodiscard]] const Node* object_if(std::string_view key);
    [[nodiscard]] const Node::Array& array(std::string_view key);

    /// The text, parsed by `T::parse`. Empty also after an error.
    template <class T>
    [[nodiscard]] std::optional<T> parsed_if(std::string_view key) {
        const auto written = text_if(key);
        if (!written) return std::nullopt;
        auto value = T::parse(*written);
        if (value) return std::move(*value);
        refuse(key, value.error());
        return std::nullopt;
    }
    template <class T>
    [[nodiscard]] std::optional<T> parsed(std::string_view key) {
        auto value = parsed_if<T>(key);
        if (!value) refuse(key, "is missing");
        return value;
    }

    /// The first error.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// Adds an error that the caller has found.
    void refuse(std::string_view key, std::string_view why);
    /// Takes over the error of an object in one of the fields, if it has one.
    void adopt(const Fields& inner);
    /// Also refuses a field that nobody has read.
    void refuse_others();

    /// The path of a field.
    [[nodiscard]] std::string path_of(std::string_view key) const;
    /// Whether the field is there and not null.
    [[nodiscard]] bool has(std::string_view key) const;

private:
    [[nodiscard]] std::optional<std::string_view> text_if(std::string_view key);
    [[nodiscard]] const Node* find_if(std::string_view key);
    void refuse(std::string_view key, const Error& why);

    const Node::Object* object_ = nullptr;
    std::string where_;
    std::vector<bool> read_{};  ///< Of each member, whether somebody has read it.
    std::optional<Error> error_{};
};

}  // namespace holdfast::json
