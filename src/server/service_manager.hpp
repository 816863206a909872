#pragma once

#include "holdfast/error.hpp"

#include <optional>
#include <string>
#include <string_view>

/// What systemd, or another manager of services, wants to hear and hands over. Its protocol is a few lines, so that no
/// library is needed.
namespace holdfast::server {

/// Says `READY=1`, `STOPPING=1` or `STATUS=…` to the manager that has started this process, if there is one. Several
/// lines may be said at once. Never fails: nobody else could do anything about it.
void notify_manager(std::string_view text);

struct InheritedSocket {
    int descriptor = -1;
    std::string address{};  ///< `127.0.0.1:7420`, `[::1]:7420`.
};

/// The listening socket that the manager has opened for this process (socket activation). Absent if there is none, and
/// the second time. Refused with `config` if there is more than one, or it is not a listening TCP socket. What it says
/// of itself is removed from the environment, so that no child believes it.
[[nodiscard]] Result<std::optional<InheritedSocket>> take_inherited_socket();

}  // namespace holdfast::server
