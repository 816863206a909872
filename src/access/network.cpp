#include "access/network.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <optional>
#include <string>

namespace holdfast::access {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

constexpr unsigned mapped_bits = 96;

struct Address {
    Bytes bytes{};
    bool is_v4 = false;
};

std::optional<Address> address_of(std::string_view text) {
    const std::string written(text);
    Address address;
    in_addr v4{};
    if (inet_pton(AF_INET, written.c_str(), &v4) == 1) {
        address.is_v4 = true;
        address.bytes[10] = address.bytes[11] = 0xff;
        std::copy_n(reinterpret_cast<const std::uint8_t*>(&v4), 4, address.bytes.begin() + 12);
        return address;
    }
    in6_addr v6{};
    if (inet_pton(AF_INET6, written.c_str(), &v6) != 1) return std::nullopt;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&v6), address.bytes.size(), address.bytes.begin());
    address.is_v4 = IN6_IS_ADDR_V4MAPPED(&v6) != 0;
    return address;
}

/// The first `bits` of the address; the others are zero.
Bytes first_bits(Bytes bytes, unsigned bits) {
    for (unsigned i = 0; i < bytes.size(); ++i) {
        const unsigned kept = std::clamp(bits, i * 8, i * 8 + 8) - i * 8;
        bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00U >> kept));
    }
    return bytes;
}

}  // namespace

Result<Network> Network::parse(std::string_view text) {
    const auto slash = text.find('/');
    const auto address = address_of(text.substr(0, slash));
    const auto refused = fail(Errc::usage, "an address or a network is written 10.0.0.7, 10.0.0.0/8 or fd00::/8");
    if (!address) return refused;
    unsigned bits = address->is_v4 ? 32 : 128;
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        unsigned length = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
        if (error != std::errc{} || end != digits.data() + digits.size() || length > bits) return refused;
        if (length == 0) return fail(Errc::usage, "a network of all addresses would trust everybody");
        bits = length;
    }
    Network network;
    network.is_v4_ = address->is_v4;
    network.bits_ = address->is_v4 ? bits + mapped_bits : bits;
    network.first_ = first_bits(address->bytes, network.bits_);
    if (network.first_ != address->bytes)
        return fail(Errc::usage, "the network has bits set behind its length, which is nearly always a mistake");
    return network;
}

bool Network::contains(std::string_view address) const {
    // The zone of a link-local address (`fe80::1%eth0`) names an interface of this host.
    const auto found = address_of(address.substr(0, address.find('%')));
    return found && found->is_v4 == is_v4_ && first_bits(found->bytes, bits_) == first_;
}

}  // namespace holdfast::access
