#include "json/lock.hpp"

#include "json/error.hpp"
#include "values/hex.hpp"

#include <algorithm>

namespace holdfast::json {
namespace {

Value asked(const std::optional<Override>& ask) {
    if (!ask) return {};
    return Object()
        .set("lock_id", Value::text(ask->lock_id.text()))
        .set("holder", Value::text(ask->asker.text))
        .set("user", Value::text_or_null(ask->asker.user))
        .set("reason", Value::text_or_null(ask->reason))
        .set("ttl_ms", Value::duration(ask->ttl))
        .set("asked_at", Value::time(ask->asked_at))
        .set("expires_at", Value::time(ask->expires_at))
        .done();
}

Value stolen(const std::optional<StolenFrom>& from) {
    if (!from) return {};
    return Object()
        .set("holder", Value::text(from->holder.text))
        .set("lock_id", Value::text(from->lock_id.text()))
        .set("token", Value::number(from->token.value))
        .set("expired_at", Value::time(from->expired_at))
        .set("user", Value::text_or_null(from->holder.user))
        .done();
}

/// All fields of a lease, or all of them null, so that readers need not check which are present.
void set_lease(Object& object, const std::optional<Lease>& lease, Instant as_of) {
    using std::chrono::milliseconds;
    object.set("lock_id", lease ? Value::text(lease->lock_id.text()) : Value())
        .set("holder", lease ? Value::text(lease->holder.text) : Value())
        .set("user", lease ? Value::text_or_null(lease->holder.user) : Value())
        .set("operation", lease ? Value::text_or_null(lease->operation) : Value())
        .set("reason", lease ? Value::text_or_null(lease->reason) : Value())
        .set("acquired_at", lease ? Value::time(lease->acquired_at) : Value())
        .set("renewed_at", lease ? Value::time(lease->renewed_at) : Value())
        .set("renew_seq", lease ? Value::number(lease->renew_seq) : Value())
        .set("expires_at", lease ? Value::time(lease->expires_at) : Value())
        .set("expires_in_ms", lease ? Value::duration(std::max(lease->expires_at - as_of, milliseconds{0})) : Value())
        .set("max_until", lease && lease->max_until ? Value::time(*lease->max_until) : Value());
}

Value lock_array(const std::vector<LockStatus>& locks, const StoreInfo& store) {
    std::vector<Value> items;
    for (const LockStatus& status : locks) items.push_back(lock(status, store).done());
    return Value::array(items);
}

}  // namespace

Object lock(const LockStatus& status, const StoreInfo& store) {
    const auto& lease = status.lease;
    Object object;
    object.set("name", Value::text(status.name.text()))
        .set("state", Value::text(name_of(status.state)))
        .set("token", Value::number(status.token.value));
    set_lease(object, lease, status.as_of);
    object.set("waiters", Value::number(status.waiters))
        .set("override", asked(status.override_request))
        .set("store_id", store.store_id ? Value::text(store.store_id->text()) : Value())
        .set("grade", Value::text(name_of(store.grade)))
        .set("meta", Value::texts(lease ? lease->meta : std::map<std::string, std::string>{}))
        .set("ttl_ms", lease ? Value::duration(lease->ttl) : Value())
        .set("as_of", Value::time(status.as_of))
        .set("seq", Value::number(status.seq))
        .set("pruned_seq", Value::number(status.pruned_seq))
        .set("chain", Value::text(to_hex(status.chain)));
    if (store.may_be_stale) object.set("may_be_stale", Value::boolean(true));
    return object;
}

Object lock_in_use(const LockStatus& status, const StoreInfo& store, const std::optional<UsualHold>& usual) {
    const auto held = time_held(status);
    Object object = lock(status, store).set("held_ms", held ? Value::duration(*held) : Value());
    if (!usual) return object;
    return object
        .set("usual_hold_ms", Object()
                                  .set("p50", Value::duration(usual->p50()))
                                  .set("p95", Value::duration(usual->p95()))
                                  .set("samples", Value::number(usual->samples()))
                                  .done())
        .set("turn_in_ms", Value::duration(usual->turn_in(status, status.waiters)));
}

Object locks(const std::vector<LockStatus>& locks, const StoreInfo& store) {
    Object object;
    object.set("locks", lock_array(locks, store));
    if (store.may_be_stale) object.set("may_be_stale", Value::boolean(true));
    return object;
}

Object overrides(const std::vector<LockStatus>& locks, const StoreInfo& store) {
    return Object().set("overrides", lock_array(locks, store));
}

Object current(const LockStatus& status, const StoreInfo& store) {
    return lock(status, store).set("current", Value::boolean(true));
}

Object released(const LockStatus& status, const StoreInfo& store) {
    return lock(status, store).set("released", Value::boolean(true));
}

Object not_released(const LockName& name) {
    return Object().set("name", Value::text(name.text())).set("released", Value::boolean(false));
}

Object broken(const LockStatus& before, const std::optional<Instant>& until, const StoreInfo& store) {
    return Object()
        .set("released", lock(before, store).done())
        .set("may_run_until", until ? Value::text(to_rfc3339(*until)) : Value());
}

Object repaired(const LockStatus& status, const StoreInfo& store, const std::optional<std::string>& what) {
    return lock(status, store)
        .set("repaired", Value::boolean(what.has_value()))
        .set("what", what ? Value::text(*what) : Value());
}

Object grant(const Outcome& outcome, const Credentials& as, const StoreInfo& store, Joined joined) {
    return lock(outcome.lock, store)
        .set("lease", Value::text(as.reveal()))
        .set("stolen_from", stolen(outcome.stolen_from))
        .set("joined", Value::boolean(joined == Joined::yes));
}

Object reply(const Reply& reply, const StoreInfo& store) {
    if (!reply) return error(reply.error(), reply.error().hint, store);
    return lock(reply->lock, store).set("stolen_from", stolen(reply->stolen_from));
}

Object replies(const std::vector<Reply>& replies, const StoreInfo& store) {
    std::vector<Value> items;
    for (const Reply& each : replies) items.push_back(reply(each, store).done());
    return Object().set("replies", Value::array(items));
}

}  // namespace holdfast::json
