#include "json/request.hpp"

namespace holdfast::json {
namespace {

using std::chrono::milliseconds;

Value names_array(const std::vector<LockName>& names) {
    std::vector<std::string> texts;
    for (const LockName& name : names) texts.push_back(name.text());
    return Value::texts(texts);
}

Value stale_lease(const StaleLease& seen) {
    return Object()
        .set("lock_id", Value::text(seen.lock_id.text()))
        .set("renew_seq", Value::number(seen.renew_seq))
        .set("stale_after_ms", Value::duration(seen.after))
        .done();
}

/// Writes the fields of each kind of request. What is empty is left out.
class RequestWriter {
public:
    RequestWriter(Object& out, std::optional<milliseconds> wait) : out_(out), wait_(wait) {}

    void operator()(const Acquire& r) {
        begin("acquire", r.name);
        lease("lease", r.as);
        holder("holder", r.holder);
        text("operation", r.operation);
        text("reason", r.reason);
        out_.set("ttl_ms", Value::duration(r.ttl.time()));
        duration("max_hold_ms", r.max_hold);
        duration("wait_ms", wait_);
        if (r.ticket) duration("ticket_ms", r.ticket->time());
        unless_held(r.unless_held);
        if (!r.meta.empty()) out_.set("meta", Value::texts(r.meta));
        if (r.takes_over) out_.set("take_over", stale_lease(*r.takes_over));
    }
    void operator()(const Renew& r) {
        begin("renew", r.name);
        lease("lease", r.as);
        out_.set("ttl_ms", Value::duration(r.ttl.time()));
        if (r.revive == Revive::yes) out_.set("revive", Value::boolean(true));
        if (r.meta) out_.set("meta", Value::texts(*r.meta));
    }
    void operator()(const Release& r) {
        begin("release", r.name);
        lease("lease", r.as);
    }
    void operator()(const Cancel& r) {
        begin("cancel", r.name);
        lease("lease", r.as);
    }
    void operator()(const Transfer& r) {
        begin("transfer", r.name);
        lease("lease", r.as);
        holder("to", r.to);
        lease("to_lease", r.to_as);
        text("reason", r.reason);
    }
    void operator()(const Break& r) {
        begin("unlock", r.name);
        out_.set("lock_id", Value::text(r.expected.text()));
        text("actor", r.actor);
        text("reason", r.reason);
    }
    void operator()(const Expire& r) {
        begin("expire", r.name);
        out_.set("lock_id", Value::text(r.lock_id.text()));
    }
    void operator()(const ReportFenced& r) {
        begin("fenced", r.name);
        out_.set("token", Value::number(r.token.value));
        out_.set("lock_id", Value::text(r.lock_id.text()));
        holder("holder", r.holder);
        text("resource", r.resource);
        text("reason", r.reason);
    }
    void operator()(const Check& r) {
        begin("check", r.name);
        out_.set("token", Value::number(r.token.value));
        if (r.lock_id) out_.set("lock_id", Value::text(r.lock_id->text()));
        unless_held(r.unless_held);
    }
    void operator()(const Ask& r) {
        begin("override_request", r.name);
        lease("lease", r.as);
        holder("holder", r.holder);
        text("reason", r.reason);
        out_.set("ttl_ms", Value::duration(r.ttl.time()));
        out_.set("valid_for_ms", Value::duration(r.valid_for.time()));
        duration("wait_ms", wait_);
    }
    void operator()(const Answer& r) {
        begin(r.verdict == Verdict::approve ? "override_approve" : "override_deny", r.name);
        out_.set("lock_id", Value::text(r.ask_id.text()));
        if (r.by) lease("lease", *r.by);
        text("actor", r.actor);
        text("reason", r.reason);
        duration("longest_ttl_ms", r.longest_ttl);
        duration("max_hold_ms", r.max_hold);
        if (r.breaks_glass) out_.set("break_glass", Value::boolean(true));
    }
    void operator()(const Prune& r) {
        begin("prune", r.name);
        out_.set("through", Value::number(r.through));
        text("actor", r.actor);
        text("reason", r.reason);
    }
    void operator()(const Repair& r) {
        begin("repair", r.name);
        text("actor", r.actor);
        text("reason", r.reason);
    }

private:
    void begin(std::string_view op, const LockName& name) {
        out_.set("op", Value::text(op)).set("name", Value::text(name.text()));
    }
    void lease(std::string_view key, const Credentials& as) { out_.set(key, Value::text(as.reveal())); }
    void text(std::string_view key, const std::string& text) {
        if (!text.empty()) out_.set(key, Value::text(text));
    }
    void holder(std::string_view key, const Holder& holder) {
        text(key, holder.text);
        text("user", holder.user);
    }
    void duration(std::string_view key, std::optional<milliseconds> time) {
        if (time) out_.set(key, Value::duration(*time));
    }
    void unless_held(const std::vector<LockName>& names) {
        if (!names.empty()) out_.set("unless_held", names_array(names));
    }

    Object& out_;
    std::optional<milliseconds> wait_;
};

}  // namespace

Object request(const Request& request, std::optional<milliseconds> wait) {
    Object object;
    std::visit(RequestWriter(object, wait), request);
    return object;
}

Object batch(const std::vector<Request>& requests) {
    std::vector<Value> items;
    for (const Request& each : requests) items.push_back(request(each).done());
    return Object().set("requests", Value::array(items));
}

}  // namespace holdfast::json
