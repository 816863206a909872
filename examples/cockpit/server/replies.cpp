#include "replies.hpp"

#include "json.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <charconv>

namespace cockpit {

namespace json = boost::json;
using holdfast::Errc;
using holdfast::Error;

Response reply(const json::object& document, int status) {
    return {.status = status, .body = json::serialize(document)};
}

Response reply(const Error& error) {
    const int status = holdfast::row_of(error.code).http_status;
    return reply(document_of(error), status == 0 ? 500 : status);
}

Response denied(const std::string& message, int status) {
    return reply(document_of(Error{Errc::denied, message}), status);
}

Response not_found() { return reply(document_of(Error{Errc::lock_not_held, "there is no such thing here"}), 404); }

holdfast::Result<json::object> object_in(const std::string& body) {
    if (body.empty()) return json::object{};
    boost::system::error_code error;
    const json::value document = json::parse(body, error);
    if (error || !document.is_object())
        return holdfast::fail(Errc::usage, "the body is no JSON object that can be read; nothing was changed");
    return document.as_object();
}

std::string text_in(const json::object& document, std::string_view key) {
    const json::value* const value = document.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

std::int64_t number_in(const json::object& document, std::string_view key, std::int64_t otherwise) {
    const json::value* const value = document.if_contains(key);
    return value != nullptr && value->is_int64() ? value->as_int64() : otherwise;
}

bool is_in(const json::object& document, std::string_view key) {
    const json::value* const value = document.if_contains(key);
    return value != nullptr && value->is_bool() && value->as_bool();
}

std::int64_t number_of(const holdfast::SqlCell& cell) {
    std::int64_t number = 0;
    if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), number);
    return number;
}

}  // namespace cockpit
