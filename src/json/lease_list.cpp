#include "json/lease_list.hpp"

#include "json/fields.hpp"

namespace holdfast::json {
namespace {

std::optional<ListedLease> listed_lease(const Node& node) {
    Fields in(node);
    const auto name = in.parsed<LockName>("name");
    const auto as = in.parsed<Credentials>("lease");
    const auto lock_id = in.parsed<LockId>("lock_id");
    const auto store_id = in.parsed_if<StoreId>("store_id");
    const auto token = in.number_if("token");
    if (in.error() || *lock_id != as->lock_id) return std::nullopt;
    ListedLease lease{.store_id = store_id, .name = *name, .as = *as};
    if (token) lease.token = FencingToken{*token};
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

Value public_lease_list(const std::vector<ListedLease>& leases) {
    std::vector<Value> items;
    for (const ListedLease& lease : leases)
        items.push_back(Object()
                            .set("name", Value::text(lease.name.text()))
                            .set("token", lease.token ? Value::number(lease.token->value) : Value())
                            .set("lock_id", Value::text(lease.as.lock_id.text()))
                            .done());
    return Value::array(items);
}

std::optional<std::vector<ListedLease>> parse_lease_list(std::string_view text) {
    const auto document = parse(text);
    if (!document || document->array() == nullptr) return std::nullopt;
    std::vector<ListedLease> leases;
    for (const Node& item : *document->array()) {
        auto lease = listed_lease(item);
        if (!lease) return std::nullopt;
        leases.push_back(std::move(*lease));
    }
    return leases;
}

}  // namespace holdfast::json
