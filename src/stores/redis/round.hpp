#pragma once

#include "base/frame.hpp"
#include "stores/batch/batch.hpp"
#include "stores/redis/keys.hpp"
#include "stores/redis/script.hpp"

#include <span>
#include <string>

/// What goes into the script and comes out of it.
namespace holdfast::stores::redis {

/// When a change may be written, by the server's clock. Outside of it, the decision is too old.
struct Window {
    Instant earliest{};
    Instant latest{};
};

/// What the script is told beside the locks.
struct Terms {
    std::optional<StoreId> known{};     ///< The store that the caller has seen.
    std::optional<StoreId> proposed{};  ///< Create it with this id, if there is none.
    std::optional<Instant> judged{};    ///< By which tickets live, instead of the server's clock.
    std::optional<Window> window{};     ///< Absent: only look.
};

/// The version of a lock that cannot be read, and that nothing will be written to.
inline constexpr std::string_view any_version = "*";

/// One lock as it was read.
struct Sight {
    /// Empty for a lock that was never used.
    std::string version{};
    /// The bytes that the record must still have. Empty where it was read just now, and the version says enough.
    base::Bytes record{};
    bool was_held = false;
    bool has_queue = false;
};

/// What the script answered.
struct Outline {
    enum class Kind { seen, done, none };
    Kind kind = Kind::none;
    std::optional<StoreId> store_id{};
    Instant time{};  ///< The server's clock.
};

/// Begins a call: the keys and arguments that come before what is to be written.
[[nodiscard]] ScriptCall call_for(const Keys& keys, const Terms& terms, std::span<const Wanted> wanted,
                                  std::span<const Sight> sights);
/// Ends a call that writes nothing.
void add_nothing(ScriptCall& call);
/// What a lock is after a change.
struct Written {
    std::string version{};
    base::Bytes record{};
};
/// Ends a call: what is to be written, decided at `now`. Gives what each change writes.
std::vector<Written> add_changes(ScriptCall& call, const Keys& keys, std::span<const Wanted> wanted,
                                 std::span<const Sight> sights, std::span<const Change> changes, Instant now);

/// Errors are of the whole store: it is gone, or another one.
[[nodiscard]] Result<Outline> outline_of(Value answer, const Address& address);

/// The lock at `index` of an answer of the kind `seen`.
[[nodiscard]] Result<LockView> view_of(Value answer, std::size_t index, const LockName& name, Instant now,
                                       Sight& sight);

}  // namespace holdfast::stores::redis
