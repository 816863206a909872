#include "json/value.hpp"

#include "values/escapes.hpp"
#include "values/text.hpp"

#include <boost/json/serialize.hpp>

namespace holdfast::json {

Value Value::text(std::string_view text) {
    // A path or a host name may hold any bytes, but a JSON document is UTF-8.
    const std::string safe = is_utf8(text) ? std::string(text) : printable(text);
    // People read documents on terminals, too: invisible characters and those that change the direction of text are
    // escaped.
    return Value(with_unicode_escapes(boost::json::serialize(boost::json::string_view(safe))));
}

Value Value::number(std::int64_t number) { return Value(std::to_string(number)); }
Value Value::number(std::uint64_t number) { return Value(std::to_string(number)); }
Value Value::boolean(bool yes) { return Value(yes ? "true" : "false"); }
Value Value::text_or_null(std::string_view text) { return text.empty() ? Value() : Value::text(text); }

Value Value::array(const std::vector<Value>& items) {
    std::string written = "[";
    for (const Value& item : items) {
        if (written.size() > 1) written += ',';
        written += item.written_;
    }
    return Value(written + "]");
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
    if (!fields_.empty()) fields_ += ',';
    fields_ += Value::text(key).written_ + ":" + value.written_;
    return *this;
}

Value Object::done() const { return Value("{" + fields_ + "}"); }

}  // namespace holdfast::json
