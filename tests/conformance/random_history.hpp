#pragma once

#include "holdfast/request.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace holdfast::tests {

/// Makes up what several clients ask of a few locks. The same seed and the same answers give the same
/// history, credentials included.
///
/// It remembers what it was told, so that requests often name the lease, the token or the question that
/// is really there, and often one of a while ago.
class RandomHistory {
public:
    explicit RandomHistory(std::uint64_t seed) : random_(seed) {}

    /// The next requests; now and then none at all.
    [[nodiscard]] std::vector<Request> batch();
    /// How long nobody asks anything.
    [[nodiscard]] std::chrono::milliseconds pause();
    /// True once in `times`.
    [[nodiscard]] bool once_in(int times);
    /// Evenly from 0 to `most`.
    [[nodiscard]] int up_to(int most);

    /// Tells what came of a request.
    void learn(const Request& request, const Reply& reply);

    [[nodiscard]] static std::vector<LockName> names();

private:
    struct Known {
        std::deque<Credentials> clients{};  ///< Recent requesters, newest first.
        FencingToken token{};
        LockId lock_id{};
        std::uint64_t renew_seq = 0;
    };

    [[nodiscard]] Request request();
    [[nodiscard]] LockName name();
    [[nodiscard]] std::array<std::uint8_t, 16> bytes();
    [[nodiscard]] Credentials fresh();
    [[nodiscard]] Credentials somebody(const LockName& name);
    [[nodiscard]] Ttl ttl();
    [[nodiscard]] std::vector<LockName> exclusions(const LockName& name);
    [[nodiscard]] Acquire acquire(const LockName& name);
    [[nodiscard]] Check check(const LockName& name);

    std::mt19937_64 random_;
    std::map<LockName, Known> known_{};
};

}  // namespace holdfast::tests
