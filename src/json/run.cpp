#include "json/run.hpp"

namespace holdfast::json {
namespace {

Value int_or_null(const std::optional<int>& number) { return number ? Value::number(std::int64_t{*number}) : Value(); }

Value run_lock(const RunLock& lock) {
    return Object()
        .set("name", Value::text(lock.name.text()))
        .set("token", lock.token ? Value::number(lock.token->value) : Value())
        .set("lock_id", Value::text(lock.lock_id.text()))
        .set("store_id", lock.store_id ? Value::text(lock.store_id->text()) : Value())
        .set("joined", Value::boolean(lock.is_joined))
        .done();
}

void set_supervised(Object& object, const Supervised& supervised) {
    std::vector<Value> locks;
    for (const RunLock& lock : supervised.locks) locks.push_back(run_lock(lock));
    std::vector<Value> left_over;
    for (const LeftOver& process : supervised.left_over)
        left_over.push_back(
            Object().set("pid", int_or_null(process.pid)).set("name", Value::text(process.name)).done());
    object.set("locks", Value::array(locks))
        .set("left_over", Value::array(left_over))
        .set("margin_ms", supervised.margin ? Value::duration(*supervised.margin) : Value());
}

}  // namespace

Object run_outcome(const RunOutcome& outcome) {
    Object object;
    object.set("outcome", Value::text(outcome.outcome))
        .set("exit_code", Value::number(std::int64_t{outcome.exit_code}))
        .set("child", Object()
                          .set("code", int_or_null(outcome.child_code))
                          .set("signal", int_or_null(outcome.child_signal))
                          .done());
    if (outcome.supervised) set_supervised(object, *outcome.supervised);
    object.set("error", outcome.error);
    return object;
}

}  // namespace holdfast::json
