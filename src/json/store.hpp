#pragma once

#include "holdfast/store.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

/// What concerns a store as a whole, or the program itself.
namespace holdfast::json {

/// What `doctor` found.
[[nodiscard]] Object examination(const StoreInfo& store, const StoreProperties& properties,
                                 const std::vector<Finding>& findings);

/// What a daemon says of its store: an examination, and what its state is.
struct ReadStore {
    StoreInfo info;
    StoreProperties properties;
    std::vector<Finding> findings{};
};
/// Refused with `usage` and the path of the field that does not fit.
[[nodiscard]] Result<ReadStore> read_store(const Node& node);

/// What `init` says of the store that is ready now.
[[nodiscard]] Object ready(const StoreInfo& store);
/// What `init --print` says; null for a store without a schema.
[[nodiscard]] Object schema(std::string_view schema);

[[nodiscard]] Object version(std::string_view version, const std::vector<std::string_view>& schemes);
[[nodiscard]] Object help(std::string_view text);
[[nodiscard]] Object completion(std::string_view script);

/// How long a call took, over all calls of that kind.
struct Spread {
    std::uint64_t count = 0;
    std::chrono::microseconds p50{};
    std::chrono::microseconds p90{};
    std::chrono::microseconds p99{};
    std::chrono::microseconds longest{};
};

/// Acquiring and releasing a lock that nobody else wants.
struct Pairs {
    std::uint64_t per_second = 0;
    Spread acquire{};
    Spread release{};
};

/// What `bench` measured.
struct Measured {
    Pairs one{};                   ///< With one client.
    std::uint64_t many_count = 0;  ///< How many clients `many` is about.
    Pairs many{};
    Spread handover{};
};

[[nodiscard]] Object measured(const StoreInfo& store, const Measured& measured);

}  // namespace holdfast::json
