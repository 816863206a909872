// Which addresses are those of a trusted proxy.
#include "access/network.hpp"

#include <gtest/gtest.h>

namespace holdfast::access {
namespace {

bool contains(const char* network, const char* address) {
    const auto parsed = Network::parse(network);
    EXPECT_TRUE(parsed) << network;
    return parsed && parsed->contains(address);
}

TEST(Network, ContainsExactlyTheAddressesOfItsLength) {
    EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2"));
    EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
    EXPECT_TRUE(contains("192.168.4.0/22", "192.168.7.255"));
    EXPECT_FALSE(contains("192.168.4.0/22", "192.168.8.0"));
    EXPECT_TRUE(contains("10.0.0.7", "10.0.0.7"));
    EXPECT_FALSE(contains("10.0.0.7", "10.0.0.70"));
    EXPECT_TRUE(contains("fd00::/8", "fdff::1"));
    EXPECT_FALSE(contains("fd00::/8", "fe00::1"));
    EXPECT_TRUE(contains("::1", "::1"));
    EXPECT_TRUE(contains("fe80::/10", "fe80::1%eth0"));
}

TEST(Network, KnowsAnIPv4AddressInEitherForm) {
    EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.1.1"));
    EXPECT_FALSE(contains("10.0.0.0/8", "::10.1.1.1"));
    EXPECT_FALSE(contains("::/8", "11.0.0.1")) << "an IPv6 network is none of IPv4";
}

TEST(Network, ContainsNothingThatIsNoAddress) {
    for (const char* text : {"", "localhost", "10.0.0", "10.0.0.07", "10.0.0.1 ", "10.0.0.1, 10.0.0.2", "0x0a000001"})
        EXPECT_FALSE(contains("10.0.0.0/8", text)) << text;
}

TEST(Network, ThatMeansSomethingElseIsRefused) {
    for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/ 8",
                             "10.0.0.1/8", "::1/64", "0.0.0.0/0", "::/0", "localhost", "10.0.0.0/8,11.0.0.0/8"})
        EXPECT_FALSE(Network::parse(text)) << text;
}

}  // namespace
}  // namespace holdfast::access
