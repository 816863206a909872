#include "json.hpp"

#include "holdfast/clock.hpp"

#include <boost/json/src.hpp>

namespace cockpit {

boost::json::object document_of(const holdfast::LockStatus& lock) {
    boost::json::object document{
        {"name", lock.name.text()}, {"state", holdfast::name_of(lock.state)}, {"token", lock.token.value}};
    document["as_of"] = holdfast::to_rfc3339(lock.as_of);
    if (!lock.lease) return document;
    const holdfast::Lease& lease = *lock.lease;
    document["lock_id"] = lease.lock_id.text();
    document["holder"] = lease.holder.text;
    document["user"] = lease.holder.user;
    document["operation"] = lease.operation;
    document["reason"] = lease.reason;
    document["acquired_at"] = holdfast::to_rfc3339(lease.acquired_at);
    document["renewed_at"] = holdfast::to_rfc3339(lease.renewed_at);
    document["renew_seq"] = lease.renew_seq;
    document["expires_at"] = holdfast::to_rfc3339(lease.expires_at);
    return document;
}

boost::json::object document_of(const holdfast::Error& error) {
    boost::json::object inside{{"code", holdfast::row_of(error.code).name}, {"message", error.message}};
    if (!error.hint.empty()) inside["hint"] = error.hint;
    if (error.holder) inside["holder"] = document_of(*error.holder);
    if (error.retry_after) inside["retry_after_ms"] = error.retry_after->count();
    return {{"error", std::move(inside)}};
}

}  // namespace cockpit
