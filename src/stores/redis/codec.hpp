#pragma once

#include "base/frame.hpp"
#include "stores/common/batch.hpp"
#include "stores/common/damage.hpp"
#include "stores/common/server_clock.hpp"
#include "stores/redis/keys.hpp"
#include "stores/redis/script.hpp"

#include <span>
#include <string>

/// The arguments of the script, and its answers.
namespace holdfast::stores::redis {

/// The arguments of a call beside the locks.
struct Terms {
    std::optional<StoreId> known{};     ///< The store that the caller has seen.
    std::optional<StoreId> proposed{};  ///< Create it with this id, if there is none; and upgrade it.
    std::optional<Instant> judged{};    ///< The time that judges tickets, instead of the server's clock.
    std::optional<Window> window{};     ///< Absent: only look.
};

/// Stands for the value of a lock that cannot be read and will not be written.
inline constexpr std::string_view any_value = "*";

/// The same of a lock that has no value although it was used: it must have none.
inline constexpr std::string_view lost_value = "-";

/// One lock as it was read.
struct Sight {
    /// The exact bytes of its key, which it must still have. Empty for a lock that was never used.
    std::string value{};
    bool was_held = false;
    bool has_queue = false;
};

/// The beginning of the script's answer.
struct Outline {
    enum class Kind { seen, done, none };
    Kind kind = Kind::none;
    std::optional<StoreId> store_id{};
    Instant time{};         ///< The server's clock.
    bool was_used = false;  ///< The store has had a lock. Not part of the answer to a write.
};

/// The changes to write if all locks still have the values that were read.
struct PlannedWrite {
    std::span<const Sight> sights;        ///< One for each lock that is wanted.
    std::span<const Change> changes;      ///< In the order of the locks.
    std::span<const std::string> values;  ///< One for each change: see `values_after`.
    Instant now{};                        ///< When it was decided.
};

/// The new value of each changed lock.
[[nodiscard]] std::vector<std::string> values_after(std::span<const Wanted> wanted, std::span<const Sight> sights,
                                                    std::span<const Change> changes, Instant now);

/// A call that writes, or without `planned` only looks.
[[nodiscard]] ScriptCall call_for(const Keys& keys, const Terms& terms, std::span<const Wanted> wanted,
                                  const PlannedWrite& planned = {});

/// An error concerns the whole store: it is gone, or was replaced.
[[nodiscard]] Result<Outline> outline_of(Value answer, const Address& address);

/// The lock at `index` of an answer of the kind `seen`.
[[nodiscard]] Result<LockView> view_of(Value answer, std::size_t index, const LockName& name, Instant now,
                                       Sight& sight);

/// Of a lock that `view_of` cannot read, what the same answer shows; nothing of its log. `sight` becomes what a Repair
/// needs in order to write it.
[[nodiscard]] Traces traces_of(Value answer, std::size_t index, Sight& sight);

}  // namespace holdfast::stores::redis
