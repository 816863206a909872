#pragma once

#include "server/serve.hpp"

namespace holdfast::server {

/// What the module does: listens, and answers until it is asked to stop.
[[nodiscard]] Result<void> run_daemon(Store& store, const Clock& clock, const ServeOptions& options);

}  // namespace holdfast::server
