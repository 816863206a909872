#pragma once

#include "base/url.hpp"
#include "holdfast/sql.hpp"
#include "holdfast/store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

/// How a part of Holdfast was built, as far as two builds do not fit together. Plain data whose layout never changes: a
/// program reads it in a module of any build before it calls anything there.
struct AbiTag {
    std::array<char, 24> version{};
    std::array<char, 72> commit{};           ///< Empty if the sources came without their history.
    std::uint32_t has_debug_containers = 0;  ///< Built with _GLIBCXX_DEBUG.
    std::uint32_t has_new_strings = 0;       ///< Built with _GLIBCXX_USE_CXX11_ABI=1.
    std::array<std::uint32_t, 20> sizes{};   ///< Of types that cross the border.

    [[nodiscard]] bool operator==(const AbiTag&) const = default;
};

/// The tag of what is compiled here, which is of `version` and `commit`.
consteval AbiTag make_abi_tag(std::string_view version, std::string_view commit) {
    AbiTag tag;
    std::ranges::copy_n(version.begin(), std::ssize(version), tag.version.begin());
    std::ranges::copy_n(commit.begin(), std::ssize(commit), tag.commit.begin());
#ifdef _GLIBCXX_DEBUG
    tag.has_debug_containers = 1;
#endif
    tag.has_new_strings = _GLIBCXX_USE_CXX11_ABI;
    tag.sizes = {sizeof(void*),
                 sizeof(std::string),
                 sizeof(std::vector<std::string>),
                 sizeof(std::map<int, int>),
                 sizeof(std::function<void()>),
                 sizeof(std::optional<std::string>),
                 sizeof(Error),
                 sizeof(Url),
                 sizeof(Deadline),
                 sizeof(Request),
                 sizeof(Reply),
                 sizeof(LockStatus),
                 sizeof(AuditEvent),
                 sizeof(EventPage),
                 sizeof(StoreInfo),
                 sizeof(StoreProperties),
                 sizeof(ListQuery),
                 sizeof(Watch),
                 sizeof(SqlValue),
                 sizeof(SqlAnswer)};
    return tag;
}

/// In what way a module with the tag `theirs` does not fit a program with the tag `ours`, in words. Absent if it fits.
[[nodiscard]] std::optional<std::string> difference(const AbiTag& ours, const AbiTag& theirs);

}  // namespace holdfast::base
