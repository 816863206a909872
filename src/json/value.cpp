#include "json/value.hpp"

#include "values/escapes.hpp"
#include "values/text.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::json {
namespace {

/// More than most objects need.
constexpr std::size_t usual_size = 512;

/// Whether a character stands for itself in a document.
constexpr bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

void append_text(std::string& out, std::string_view text) {
    if (std::ranges::all_of(text, is_plain)) {
        out += '"';
        out += text;
        out += '"';
        return;
    }
    // A path or a host name may hold any bytes, but a JSON document is UTF-8.
    const std::string safe = is_utf8(text) ? std::string(text) : printable(text);
    // People read documents on terminals, too: invisible characters and those that change the direction of text are
    // escaped.
    out += with_unicode_escapes(boost::json::serialize(boost::json::string_view(safe)));
}

}  // namespace

Value Value::text(std::string_view text) {
    std::string written;
    written.reserve(text.size() + 2);
    append_text(written, text);
    return Value(std::move(written));
}

Value Value::number(std::int64_t number) { return Value(std::to_string(number)); }
Value Value::number(std::uint64_t number) { return Value(std::to_string(number)); }
Value Value::boolean(bool yes) { return Value(yes ? "true" : "false"); }
Value Value::text_or_null(std::string_view text) { return text.empty() ? Value() : Value::text(text); }

Value Value::array(const std::vector<Value>& items) {
    std::size_t size = 2 + items.size();
    for (const Value& item : items) size += item.written_.size();
    std::string written = "[";
    written.reserve(size);
    for (const Value& item : items) {
        if (written.size() > 1) written += ',';
        written += item.written_;
    }
    written += ']';
    return Value(std::move(written));
}

Value Value::time(Instant instant) { return Value::text(to_rfc3339(instant)); }
Value Value::duration(std::chrono::milliseconds time) { return Value::number(std::int64_t{time.count()}); }

Value Value::texts(const std::vector<std::string>& texts) {
    std::vector<Value> items;
    for (const std::string& text : texts) items.push_back(Value::text(text));
    return Value::array(items);
}

Value Value::texts(const std::map<std::string, std::string>& texts) {
    Object object;
    for (const auto& [key, text] : texts) object.set(key, Value::text(text));
    return object.done();
}

Object& Object::set(std::string_view key, const Value& value) {
    if (written_.empty()) written_.reserve(usual_size);
    written_ += written_.empty() ? '{' : ',';
    append_text(written_, key);
    written_ += ':';
    written_ += value.written_;
    return *this;
}

Value Object::done() const { return Value(written_.empty() ? "{}" : written_ + "}"); }

}  // namespace holdfast::json
