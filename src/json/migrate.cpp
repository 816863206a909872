#include "json/migrate.hpp"

#include "json/error.hpp"
#include "json/fields.hpp"

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

/// A document that was read, written again.
Value write(const Node& node) {
    if (const auto* items = node.array()) {
        std::vector<Value> values;
        for (const Node& item : *items) values.push_back(write(item));
        return Value::array(values);
    }
    if (const auto* members = node.object()) {
        Object object;
        for (const Member& member : *members) object.set(member.key, write(member.node));
        return object.done();
    }
    if (const auto* text = std::get_if<std::string>(&node.value)) return Value::text(*text);
    if (const auto* number = std::get_if<std::int64_t>(&node.value)) return Value::number(*number);
    if (const auto* yes = std::get_if<bool>(&node.value)) return Value::boolean(*yes);
    return {};
}

Value write(const MigrationTarget& target) {
    Object object;
    object.set("database", Value::text(target.database)).set("schema", Value::text_or_null(target.schema));
    object.set("status", Value::text(target.status));
    if (target.exit_status) object.set("exit_status", Value::number(std::int64_t{*target.exit_status}));
    const bool refused = target.document != nullptr && Fields(*target.document).object_if("error") != nullptr;
    if (target.error) object.set("error", error_body(*target.error, "", std::nullopt).done());
    if (refused) object.set("error", write(*Fields(*target.document).object_if("error")));
    if (target.document != nullptr && !refused) object.set("result", write(*target.document));
    return object.done();
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

Object migration_targets(const std::vector<MigrationTarget>& targets) {
    const auto count = [&](std::string_view status) {
        return Value::number(std::ranges::count(targets, status, &MigrationTarget::status));
    };
    Object document;
    document.set("targets", list_of(targets, [](const MigrationTarget& target) { return write(target); }))
        .set("done", count("done"))
        .set("skipped", count("skipped"))
        .set("failed", count("failed"))
        .set("not_started", count("not_started"));
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
