#include "json/documents.hpp"

#include "values/hex.hpp"

#include <algorithm>

namespace holdfast::json {
namespace {

Value time(Instant instant) { return Value::text(to_rfc3339(instant)); }
Value milliseconds(std::chrono::milliseconds time) { return Value::number(std::int64_t{time.count()}); }

Value map(const std::map<std::string, std::string>& map) {
    Object object;
    for (const auto& [key, value] : map) object.set(key, Value::text(value));
    return object.done();
}

Value texts(const std::vector<std::string>& texts) {
    std::vector<Value> items;
    for (const std::string& text : texts) items.push_back(Value::text(text));
    return Value::array(items);
}

Value asked(const std::optional<Override>& ask) {
    if (!ask) return {};
    return Object()
        .set("lock_id", Value::text(ask->lock_id.text()))
        .set("holder", Value::text(ask->asker.text))
        .set("user", Value::text_or_null(ask->asker.user))
        .set("reason", Value::text_or_null(ask->reason))
        .set("ttl_ms", milliseconds(ask->ttl))
        .set("asked_at", time(ask->asked_at))
        .set("expires_at", time(ask->expires_at))
        .done();
}

Value stolen(const std::optional<StolenFrom>& from) {
    if (!from) return {};
    return Object()
        .set("holder", Value::text(from->holder.text))
        .set("lock_id", Value::text(from->lock_id.text()))
        .set("token", Value::number(from->token.value))
        .set("expired_at", time(from->expired_at))
        .done();
}

/// Every field of a lease, or every one of them null: readers need not ask which are there.
void set_lease(Object& object, const std::optional<Lease>& lease, Instant as_of) {
    using std::chrono::milliseconds;
    object.set("lock_id", lease ? Value::text(lease->lock_id.text()) : Value())
        .set("holder", lease ? Value::text(lease->holder.text) : Value())
        .set("user", lease ? Value::text_or_null(lease->holder.user) : Value())
        .set("operation", lease ? Value::text_or_null(lease->operation) : Value())
        .set("reason", lease ? Value::text_or_null(lease->reason) : Value())
        .set("acquired_at", lease ? time(lease->acquired_at) : Value())
        .set("renewed_at", lease ? time(lease->renewed_at) : Value())
        .set("renew_seq", lease ? Value::number(lease->renew_seq) : Value())
        .set("expires_at", lease ? time(lease->expires_at) : Value())
        .set("expires_in_ms",
             lease ? json::milliseconds(std::max(lease->expires_at - as_of, milliseconds{0})) : Value())
        .set("max_until", lease && lease->max_until ? time(*lease->max_until) : Value());
}

}  // namespace

Object lock(const LockStatus& status, const StoreInfo& store) {
    Object object;
    object.set("name", Value::text(status.name.text()))
        .set("state", Value::text(name_of(status.state)))
        .set("token", Value::number(status.token.value));
    set_lease(object, status.lease, status.as_of);
    object.set("waiters", Value::number(status.waiters))
        .set("override", asked(status.override_request))
        .set("store_id", store.store_id ? Value::text(store.store_id->text()) : Value())
        .set("grade", Value::text(name_of(store.grade)))
        .set("meta", map(status.lease ? status.lease->meta : std::map<std::string, std::string>{}));
    return object;
}

Object grant(const Outcome& outcome, const Credentials& as, const StoreInfo& store) {
    Object object = lock(outcome.lock, store);
    object.set("lease", Value::text(as.reveal())).set("stolen_from", stolen(outcome.stolen_from));
    return object;
}

Object event(const AuditEvent& event) {
    Object object;
    object.set("seq", Value::number(event.seq))
        .set("at", time(event.at))
        .set("name", Value::text(event.name.text()))
        .set("event", Value::text(name_of(event.kind)))
        .set("token", Value::number(event.token.value))
        .set("lock_id", Value::text(event.lock_id.text()))
        .set("holder", Value::text_or_null(event.holder.text))
        .set("user", Value::text_or_null(event.holder.user))
        .set("actor", Value::text_or_null(event.actor))
        .set("reason", Value::text_or_null(event.reason))
        .set("details", map(event.details))
        .set("prev_hash", Value::text(to_hex(event.prev_hash)))
        .set("hash", Value::text(to_hex(event.hash)));
    return object;
}

Object error_body(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store) {
    Object body;
    body.set("code", Value::text(row_of(error.code).name))
        .set("message", Value::text(error.message))
        .set("hint", Value::text_or_null(hint))
        .set("holder", error.holder && store ? lock(*error.holder, *store).done() : Value())
        .set("retry_after_ms", error.retry_after ? milliseconds(*error.retry_after) : Value());
    return body;
}

Object error(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store) {
    return Object().set("error", error_body(error, hint, store).done());
}

Object examination(const StoreInfo& store, const std::vector<Finding>& findings) {
    std::vector<Value> checks;
    for (const Finding& finding : findings)
        checks.push_back(Object()
                             .set("name", Value::text(finding.name))
                             .set("ok", Value::boolean(finding.ok))
                             .set("detail", Value::text(finding.detail))
                             .done());
    Object object;
    object.set("grade", Value::text(name_of(store.grade)))
        .set("store", Value::text(store.url))
        .set("store_id", store.store_id ? Value::text(store.store_id->text()) : Value())
        .set("reasons", texts(store.reasons))
        .set("checks", Value::array(checks));
    return object;
}

}  // namespace holdfast::json
