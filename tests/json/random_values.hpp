#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace holdfast::json {

/// Values as hostile as a store accepts them: quotes, control characters, text that changes its direction, numbers up
/// to 2^53, empty and absent ones.
class RandomValues {
public:
    explicit RandomValues(std::uint64_t seed) : random_(seed) {}

    [[nodiscard]] std::uint64_t number_below(std::uint64_t limit);
    [[nodiscard]] bool maybe() { return number_below(2) == 0; }
    [[nodiscard]] std::string text();  ///< Sometimes empty.
    [[nodiscard]] LockName name();
    [[nodiscard]] std::vector<LockName> names();
    [[nodiscard]] Holder holder() { return {text(), text()}; }
    [[nodiscard]] Instant time();
    [[nodiscard]] std::chrono::milliseconds duration();
    [[nodiscard]] Ttl ttl();
    [[nodiscard]] Digest digest();
    [[nodiscard]] std::map<std::string, std::string> texts();
    [[nodiscard]] StoreInfo store();
    [[nodiscard]] LockStatus lock();
    [[nodiscard]] Outcome outcome();
    [[nodiscard]] Error error();
    [[nodiscard]] AuditEvent event();
    [[nodiscard]] Request request();

private:
    [[nodiscard]] Lease lease(FencingToken token);
    [[nodiscard]] std::uint64_t number();  ///< Below 2^53, often close to it or to 0.

    std::mt19937_64 random_;
};

}  // namespace holdfast::json
