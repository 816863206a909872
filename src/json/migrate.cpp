#include "json/migrate.hpp"

#include <algorithm>

namespace holdfast::json {
namespace {

template <class Item, class Write>
Value list_of(const std::vector<Item>& items, Write write) {
    std::vector<Value> values;
    for (const Item& item : items) values.push_back(write(item));
    return Value::array(values);
}

Value write(const Migration& item) {
    Object object;
    object.set("version", Value::text(item.version)).set("name", Value::text(item.name));
    if (!item.state.empty()) object.set("state", Value::text(item.state));
    if (!item.applied) return object.done();
    if (!item.applied->at.empty())
        object.set("applied_at", Value::text(item.applied->at))
            .set("applied_by", Value::text_or_null(item.applied->by));
    return object.set("token", Value::number(item.applied->token))
        .set("duration_ms", Value::number(item.applied->duration_ms))
        .set("statements", Value::number(item.applied->statements))
        .done();
}

Value write(const SchemaObject& item) {
    return Object().set("kind", Value::text(item.kind)).set("name", Value::text(item.name)).done();
}

Value write(const LintFinding& item) {
    return Object()
        .set("file", Value::text(item.file))
        .set("line", Value::number(item.line))
        .set("rule", Value::text(item.rule))
        .set("message", Value::text(item.message))
        .done();
}

Value migrations(const std::vector<Migration>& items) {
    return list_of(items, [](const Migration& item) { return write(item); });
}

Value objects(const std::vector<SchemaObject>& items) {
    return list_of(items, [](const SchemaObject& item) { return write(item); });
}

}  // namespace

Object migrated(std::string_view done_as, const std::vector<Migration>& done, const std::vector<Migration>& pending,
                const std::vector<std::string>& warnings) {
    Object document;
    document.set(done_as, migrations(done)).set("pending", migrations(pending)).set("warnings", Value::texts(warnings));
    return document;
}

Object migration_status(const std::vector<Migration>& all) {
    std::vector<Migration> pending;
    std::ranges::copy_if(all, std::back_inserter(pending),
                         [](const Migration& item) { return item.state == "pending" || item.state == "changed"; });
    Object document;
    document.set("migrations", migrations(all)).set("pending", migrations(pending));
    return document;
}

Object schema_drift(const std::vector<SchemaObject>& changed, const std::vector<SchemaObject>& missing,
                    const std::vector<SchemaObject>& not_ours) {
    Object document;
    document.set("drift", Value::boolean(!changed.empty() || !missing.empty()))
        .set("changed", objects(changed))
        .set("missing", objects(missing))
        .set("not_ours", objects(not_ours));
    return document;
}

Object lint_findings(const std::vector<LintFinding>& findings) {
    Object document;
    document.set("findings", list_of(findings, [](const LintFinding& item) { return write(item); }));
    return document;
}

Object repaired(const std::vector<std::string>& what) {
    Object document;
    document.set("repaired", Value::texts(what));
    return document;
}

Object baseline(std::string_view version) {
    Object document;
    document.set("baseline", Value::text(version));
    return document;
}

Object new_file(std::string_view path) {
    Object document;
    document.set("file", Value::text(path));
    return document;
}

}  // namespace holdfast::json
