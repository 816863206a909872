#pragma once

#include <cstdint>
#include <netinet/in.h>

namespace holdfast::tests {

[[nodiscard]] inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

}  // namespace holdfast::tests
