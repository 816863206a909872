#include "base/loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string>

namespace holdfast::base {

bool is_loopback(std::string_view host) {
    const std::string text(host);
    in_addr four{};
    if (inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
    in6_addr six{};
    if (inet_pton(AF_INET6, text.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six) != 0;
    return host == "localhost";
}

}  // namespace holdfast::base
