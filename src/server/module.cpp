#include "server/daemon.hpp"

extern "C" [[gnu::visibility("default")]] const holdfast::server::Module* holdfast_server_module() {
    static constexpr holdfast::server::Module module{HOLDFAST_VERSION, holdfast::server::run_daemon};
    return &module;
}
