#include "json/lease_list.hpp"

#include <boost/json/parse.hpp>

namespace holdfast::json {
namespace {

/// Absent for what is not a text.
std::optional<std::string_view> text_of(const boost::json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string_view(value->get_string());
}

bool is_null(const boost::json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    return value == nullptr || value->is_null();
}

std::optional<ListedLease> lease_of(const boost::json::value& value) {
    if (!value.is_object()) return std::nullopt;
    const boost::json::object& object = value.get_object();
    const auto name = LockName::parse(text_of(object, "name").value_or(""));
    const auto as = Credentials::parse(text_of(object, "lease").value_or(""));
    if (!name || !as || text_of(object, "lock_id") != as->lock_id.text()) return std::nullopt;
    ListedLease lease{.name = *name, .as = *as};
    if (!is_null(object, "store_id")) {
        const auto id = StoreId::parse(text_of(object, "store_id").value_or(""));
        if (!id) return std::nullopt;
        lease.store_id = *id;
    }
    if (!is_null(object, "token")) {
        const auto* token = object.if_contains("token");
        if (!token->is_int64() || token->get_int64() < 0) return std::nullopt;
        lease.token = FencingToken{static_cast<std::uint64_t>(token->get_int64())};
        if (lease.token->value >= FencingToken::limit) return std::nullopt;
    }
    return lease;
}

}  // namespace

Value lease_list(const std::vector<ListedLease>& leases) {
    std::vector<Value> items;
    for (const ListedLease& lease : leases)
        items.push_back(Object()
                            .set("store_id", lease.store_id ? Value::text(lease.store_id->text()) : Value())
                            .set("name", Value::text(lease.name.text()))
                            .set("token", lease.token ? Value::number(lease.token->value) : Value())
                            .set("lock_id", Value::text(lease.as.lock_id.text()))
                            .set("lease", Value::text(lease.as.reveal()))
                            .done());
    return Value::array(items);
}

std::optional<std::vector<ListedLease>> parse_lease_list(std::string_view text) {
    boost::json::error_code error;
    const auto document = boost::json::parse(text, error);
    if (error || !document.is_array()) return std::nullopt;
    std::vector<ListedLease> leases;
    for (const boost::json::value& item : document.get_array()) {
        auto lease = lease_of(item);
        if (!lease) return std::nullopt;
        leases.push_back(std::move(*lease));
    }
    return leases;
}

}  // namespace holdfast::json
