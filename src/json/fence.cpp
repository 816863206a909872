#include "json/fence.hpp"

namespace holdfast::json {

Object seal(std::string_view name, const StoreId& store_id, FencingToken token, const LockId& lock_id) {
    return Object()
        .set("name", Value::text(name))
        .set("token", Value::number(token.value))
        .set("lock_id", Value::text(lock_id.text()))
        .set("store_id", Value::text(store_id.text()));
}

Object protected_table(std::string_view table, std::string_view lock, bool covered) {
    return Object()
        .set("table", Value::text(table))
        .set("lock", Value::text_or_null(lock))
        .set("covered", Value::boolean(covered && !lock.empty()));
}

Object fence_status(const std::vector<Value>& seals, const std::vector<Value>& tables) {
    return Object().set("seals", Value::array(seals)).set("tables", Value::array(tables));
}

Object fence_ready(std::string_view database) { return Object().set("database", Value::text(database)); }

}  // namespace holdfast::json
