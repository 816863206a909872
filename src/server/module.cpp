#include "server/module.hpp"

#include "server/daemon.hpp"

extern "C" [[gnu::visibility("default")]] const holdfast::base::ModuleHead* holdfast_server_module_daemon() {
    static constexpr holdfast::server::Module module{{HOLDFAST_ABI_TAG}, holdfast::server::run_daemon};
    return &module;
}
