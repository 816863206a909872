#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace torture {

/// What a run is asked to do.
struct Options {
    std::string store = "file";  ///< A kind of store, which is then started empty; or the URL of one.
    std::vector<std::string> faults{};
    std::vector<std::string> workloads{};
    std::chrono::seconds time{30};
    std::optional<std::uint64_t> rounds{};  ///< So many faults instead of so much time.
    std::uint64_t seed = 1;
    std::size_t clients = 12;
    std::chrono::milliseconds ttl{500};
    std::chrono::milliseconds margin{0};  ///< Of the store; not asked for, but found out.
    bool guard = true;
    std::optional<std::string> keep{};  ///< Where the history goes.
};

/// Throws std::invalid_argument, with what to say to the user.
[[nodiscard]] Options parse_options(int count, char** arguments);

[[nodiscard]] std::string usage();

}  // namespace torture
