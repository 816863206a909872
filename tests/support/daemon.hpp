#pragma once

#include "holdfast/store.hpp"
#include "server/serve.hpp"
#include "support/temp_folder.hpp"

#include <cstdint>
#include <string>
#include <thread>

namespace holdfast::tests {

/// A daemon in this process, on a free port of the loopback. It is asked by HTTP, like any other. It does nothing of
/// its own accord: no lease is ended behind a test's back.
class DaemonInside {
public:
    /// `store` and `clock` must outlive it. Throws if it does not listen in time.
    DaemonInside(Store& store, const Clock& clock, server::ServeOptions options = {});
    DaemonInside(const DaemonInside&) = delete;
    DaemonInside& operator=(const DaemonInside&) = delete;
    ~DaemonInside();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

private:
    TempFolder folder_;
    std::uint16_t port_ = 0;
    std::jthread thread_{};  ///< Last, so that it ends before what it uses.
};

}  // namespace holdfast::tests
