#pragma once

#include "base/fd.hpp"
#include "holdfast/lease.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace torture {

enum class Guard { on, off };

/// A resource behind a fence: a register whose every change is a line of its journal.
///
/// The fence remembers token and lock_id of the last seal. A seal with a higher token passes, or with the same token
/// and lock_id; a write passes only with those of the last seal. Each step is one appended record under a lock of the
/// kernel, so a process that is killed leaves the state before it or after it.
class GuardedRegister {
public:
    /// `lock` is the name of the lock that protects it. Throws if the file cannot be opened.
    GuardedRegister(const std::string& file, std::string lock, Guard guard);

    /// False: somebody newer was here.
    [[nodiscard]] bool seal(holdfast::FencingToken token, const holdfast::LockId& id);
    /// The version.
    [[nodiscard]] std::uint64_t read();
    /// The new version, or nothing: refused. `number` is the caller's own count of writes under this token.
    [[nodiscard]] std::optional<std::uint64_t> write(holdfast::FencingToken token, const holdfast::LockId& id,
                                                     std::uint64_t number, std::uint64_t base);

private:
    struct Last {
        std::uint64_t version = 0;
        std::uint64_t token = 0;
        std::string id{};
    };
    class Turn;
    [[nodiscard]] Last last() const;
    void append(std::string_view kind, const Last& next, std::uint64_t number, std::uint64_t base);

    holdfast::base::Fd file_;
    std::string lock_;
    Guard guard_;
};

}  // namespace torture
