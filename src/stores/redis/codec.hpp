#pragma once

#include "base/frame.hpp"
#include "stores/common/batch.hpp"
#include "stores/common/server_clock.hpp"
#include "stores/redis/keys.hpp"
#include "stores/redis/script.hpp"

#include <span>
#include <string>

/// What goes into the script and comes out of it.
namespace holdfast::stores::redis {

/// What the script is told beside the locks.
struct Terms {
    std::optional<StoreId> known{};     ///< The store that the caller has seen.
    std::optional<StoreId> proposed{};  ///< Create it with this id, if there is none.
    std::optional<Instant> judged{};    ///< By which tickets live, instead of the server's clock.
    std::optional<Window> window{};     ///< Absent: only look.
};

/// The value of a lock that cannot be read, and that nothing will be written to.
inline constexpr std::string_view any_value = "*";

/// One lock as it was read.
struct Sight {
    /// The exact bytes of its key, which it must still have. Empty for a lock that was never used.
    std::string value{};
    bool was_held = false;
    bool has_queue = false;
};

/// What the script answered.
struct Outline {
    enum class Kind { seen, done, none };
    Kind kind = Kind::none;
    std::optional<StoreId> store_id{};
    Instant time{};         ///< The server's clock.
    bool was_used = false;  ///< The store has had a lock. Not told when something was written.
};

/// What is to be written, if all locks are still as they were seen.
struct Writing {
    std::span<const Sight> sights;        ///< One for each lock that is wanted.
    std::span<const Change> changes;      ///< In the order of the locks.
    std::span<const std::string> values;  ///< One for each change: see `values_after`.
    Instant now{};                        ///< At which it was decided.
};

/// What the key of each changed lock becomes.
[[nodiscard]] std::vector<std::string> values_after(std::span<const Wanted> wanted, std::span<const Sight> sights,
                                                    std::span<const Change> changes, Instant now);

/// A call that writes, or without `writing` only looks.
[[nodiscard]] ScriptCall call_for(const Keys& keys, const Terms& terms, std::span<const Wanted> wanted,
                                  const Writing& writing = {});

/// Errors are of the whole store: it is gone, or another one.
[[nodiscard]] Result<Outline> outline_of(Value answer, const Address& address);

/// The lock at `index` of an answer of the kind `seen`.
[[nodiscard]] Result<LockView> view_of(Value answer, std::size_t index, const LockName& name, Instant now,
                                       Sight& sight);

}  // namespace holdfast::stores::redis
