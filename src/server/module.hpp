#pragma once

#include "base/module.hpp"
#include "server/serve.hpp"

namespace holdfast::server {

struct Module : base::ModuleHead {
    Result<void> (*serve)(Store& store, const Clock& clock, const ServeOptions& options);
};

}  // namespace holdfast::server
