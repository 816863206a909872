#include "json/error.hpp"

#include "json/fields.hpp"
#include "json/lock.hpp"

#include <algorithm>
#include <memory>

namespace holdfast::json {

Object error_body(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store) {
    Object body;
    body.set("code", Value::text(row_of(error.code).name))
        .set("message", Value::text(error.message))
        .set("hint", Value::text_or_null(hint))
        .set("holder", error.holder && store ? lock(*error.holder, *store).done() : Value())
        .set("retry_after_ms", error.retry_after ? Value::duration(*error.retry_after) : Value());
    if (error.store_is_lost) body.set("store_is_lost", Value::boolean(true));
    return body;
}

Object error(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store) {
    return Object().set("error", error_body(error, hint, store).done());
}

Result<Error> read_error(const Node& node, const std::string& where) {
    Fields outer(node, where);
    const Node* body = outer.object_if("error");
    if (body == nullptr) outer.refuse("error", "is missing");
    if (outer.error()) return std::unexpected(*outer.error());
    Fields in(*body, outer.path_of("error"));
    const std::string name = in.text("code");
    const auto row = std::ranges::find(error_table(), name, &ErrorRow::name);
    if (row == error_table().end()) in.refuse("code", "is not one of the codes that this version knows");
    std::string message = in.text("message");
    std::string hint = in.text_or_empty("hint");
    const Node* holder = in.object_if("holder");
    const auto retry_after = in.duration_if("retry_after_ms");
    const bool store_is_lost = in.is_true("store_is_lost");
    if (in.error()) return std::unexpected(*in.error());
    Error error{row->code, std::move(message)};
    error.hint = std::move(hint);
    error.retry_after = retry_after;
    error.store_is_lost = store_is_lost;
    if (holder != nullptr) {
        auto lock = read_lock(*holder, in.path_of("holder"));
        if (!lock) return std::unexpected(lock.error());
        error.holder = std::make_shared<const LockStatus>(std::move(lock->status));
    }
    return error;
}

}  // namespace holdfast::json
