#include "json/data.hpp"

namespace holdfast::json {

Object synced(bool dry_run, const std::vector<SyncedTable>& tables) {
    std::vector<Value> items;
    for (const SyncedTable& table : tables)
        items.push_back(Object()
                            .set("name", Value::text(table.name))
                            .set("strategy", Value::text(table.strategy))
                            .set("rows", Value::number(table.rows))
                            .set("inserted", Value::number(table.inserted))
                            .set("updated", Value::number(table.updated))
                            .set("deleted", Value::number(table.deleted))
                            .set("unchanged", Value::number(table.unchanged))
                            .done());
    Object document;
    document.set("dry_run", Value::boolean(dry_run)).set("tables", Value::array(items));
    return document;
}

}  // namespace holdfast::json
