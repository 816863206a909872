#include "server/module.hpp"
#include "server/serve.hpp"

namespace holdfast::server {

Result<void> serve(Store& store, const Clock& clock, const ServeOptions& options) {
    const auto module = base::load_module("server", "daemon");
    if (!module) return std::unexpected(module.error());
    return static_cast<const Module*>(*module)->serve(store, clock, options);
}

}  // namespace holdfast::server
