#include "json/store.hpp"

namespace holdfast::json {
namespace {

Value store_id_or_null(const StoreInfo& store) {
    return store.store_id ? Value::text(store.store_id->text()) : Value();
}

Value spread_value(const Spread& spread) {
    return Object()
        .set("count", Value::number(spread.count))
        .set("p50_us", Value::number(std::int64_t{spread.p50.count()}))
        .set("p90_us", Value::number(std::int64_t{spread.p90.count()}))
        .set("p99_us", Value::number(std::int64_t{spread.p99.count()}))
        .set("max_us", Value::number(std::int64_t{spread.longest.count()}))
        .done();
}

Value pairs_value(const Pairs& pairs, std::uint64_t clients) {
    return Object()
        .set("clients", Value::number(clients))
        .set("pairs_per_second", Value::number(pairs.per_second))
        .set("acquire", spread_value(pairs.acquire))
        .set("release", spread_value(pairs.release))
        .done();
}

Object properties_of(const StoreProperties& store) {
    return Object()
        .set("is_shared", Value::boolean(store.is_shared))
        .set("has_sessions", Value::boolean(store.has_sessions))
        .set("pushes", Value::boolean(store.pushes))
        .set("commits_batches_as_one", Value::boolean(store.commits_batches_as_one))
        .set("shows_only_durable", Value::boolean(store.shows_only_durable))
        .set("clock_resolution_ms", Value::number(std::int64_t{store.clock_resolution.count()}))
        .set("largest_value", store.largest_value ? Value::number(std::uint64_t{*store.largest_value}) : Value());
}

}  // namespace

Object examination(const StoreInfo& store, const StoreProperties& properties, const std::vector<Finding>& findings) {
    std::vector<Value> checks;
    for (const Finding& finding : findings)
        checks.push_back(Object()
                             .set("name", Value::text(finding.name))
                             .set("ok", Value::boolean(finding.ok))
                             .set("detail", Value::text(finding.detail))
                             .done());
    return Object()
        .set("grade", Value::text(name_of(store.grade)))
        .set("store", Value::text(store.url))
        .set("store_id", store_id_or_null(store))
        .set("reasons", Value::texts(store.reasons))
        .set("properties", properties_of(properties).done())
        .set("checks", Value::array(checks));
}

Object ready(const StoreInfo& store) {
    return Object()
        .set("store", Value::text(store.url))
        .set("store_id", store_id_or_null(store))
        .set("grade", Value::text(name_of(store.grade)));
}

Object schema(std::string_view schema) { return Object().set("schema", Value::text_or_null(schema)); }

Object version(std::string_view version, const std::vector<std::string_view>& schemes) {
    std::vector<Value> stores;
    for (const std::string_view scheme : schemes) stores.push_back(Value::text(scheme));
    return Object().set("version", Value::text(version)).set("stores", Value::array(stores));
}

Object help(std::string_view text) { return Object().set("help", Value::text(text)); }
Object completion(std::string_view script) { return Object().set("completion", Value::text(script)); }

Object measured(const StoreInfo& store, const Measured& measured) {
    return Object()
        .set("store", Value::text(store.url))
        .set("grade", Value::text(name_of(store.grade)))
        .set("one", pairs_value(measured.one, 1))
        .set("many", pairs_value(measured.many, measured.many_count))
        .set("handover", spread_value(measured.handover));
}

}  // namespace holdfast::json
