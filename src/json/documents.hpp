#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"
#include "json/value.hpp"

/// The documents that programs read: of the command line, of the daemon, of the event stream. Their
/// fields are a contract: fields are added, never renamed or removed.
namespace holdfast::json {

/// One lock. `store` is what the lock's store said of itself.
[[nodiscard]] Object lock(const LockStatus& status, const StoreInfo& store);

/// A lock that was just granted, with the secret of its lease: only for the caller who asked.
[[nodiscard]] Object grant(const Outcome& outcome, const Credentials& as, const StoreInfo& store);

[[nodiscard]] Object event(const AuditEvent& event);

/// What becomes of a call that did not succeed: `{"error":{…}}`. Without `store` the call never got
/// as far as one.
[[nodiscard]] Object error(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store);

/// The inside of that: `{"code":…}`.
[[nodiscard]] Object error_body(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store);

/// What `doctor` found.
[[nodiscard]] Object examination(const StoreInfo& store, const std::vector<Finding>& findings);

}  // namespace holdfast::json
