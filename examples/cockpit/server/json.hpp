#pragma once

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <boost/json/object.hpp>

namespace cockpit {

/// `{"error":{"code","message",…}}`, as the daemon words it, so that pages read one kind of error.
[[nodiscard]] boost::json::object document_of(const holdfast::Error& error);

/// Those fields of a lock that pages need.
[[nodiscard]] boost::json::object document_of(const holdfast::LockStatus& lock);

}  // namespace cockpit
